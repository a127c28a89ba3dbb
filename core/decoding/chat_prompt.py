"""A chat template filled in, and said whose fault it is where that fails."""

from __future__ import annotations

from collections.abc import Callable

from jinja2.exceptions import TemplateError

from core.errors import PromptError
from core.models.library_errors import full_message, readable_reason
from core.models.templates.template_budget import TemplateLimitError
from resources.language import tr


def fill_chat_template(model: str, fill: Callable[[], str]) -> str:
    """What `fill` makes of a chat for the model of that name. Raises PromptError for whatever it raises."""
    try:
        return fill()
    except Exception as error:  # templates raise whatever they like
        raise _template_error(model, error) from error


def _template_error(model: str, error: Exception) -> PromptError:
    """A refusal in the template's own words, a template beyond its limits, or one that fails."""
    if isinstance(error, TemplateLimitError):
        return PromptError(
            tr("The chat template of {model} is not followed: {error}.").format(model=model, error=error),
            tr("Write the prompt as plain text, or choose another model."),
        )
    if type(error) is TemplateError or not isinstance(error, (TemplateError, *_PYTHON_ERRORS)):
        return PromptError(
            tr("The chat template of {model} refuses these messages: {error}").format(model=model, error=error),
            tr("Check that the roles alternate between user and assistant, beginning with the user."),
        )
    return PromptError(
        tr("The chat template of {model} cannot be filled with these messages: {reason}.").format(
            model=model, reason=readable_reason(error)
        ),
        tr(
            "Give each message a role and a text. Where each has both, the template is at fault: write the prompt as "
            "plain text, or copy the model's tokenizer files again."
        ),
        full_message(error),
    )


_PYTHON_ERRORS = (TypeError, AttributeError, LookupError, ArithmeticError, RecursionError, UnicodeError)
"""Python's own, which no template means to raise."""

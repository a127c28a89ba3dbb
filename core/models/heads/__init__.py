"""Prediction heads that draft from a model's own hidden states: those in its checkpoint (MTP) and separate EAGLE
heads.
"""

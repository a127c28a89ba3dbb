/* Search runs in a Web Worker, which browsers refuse to start from file://. There, a hidden iframe takes its place.
   The theme's worker looks for the class `IFrameWorker` of its parent window and awaits `importScripts`. */
(function () {
  if (location.protocol !== "file:") return

  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super()
      this.onmessage = null
      this.waiting = []
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.appendChild(frame)
      const inner = (this.inner = frame.contentWindow)
      inner.document.open()
      inner.document.write("<!doctype html><body></body>")
      inner.document.close()
      inner.postMessage = data => this.receive(data)
      inner.importScripts = (...urls) => urls.reduce((done, next) => done.then(() => load(inner, next)), Promise.resolve())
      load(inner, String(url)).then(() => {
        const sent = this.waiting
        this.waiting = null
        sent.forEach(data => this.postMessage(data))
      })
    }

    postMessage(data) {
      if (this.waiting) this.waiting.push(data)
      else this.inner.dispatchEvent(new this.inner.MessageEvent("message", { data }))
    }

    receive(data) {
      const event = new MessageEvent("message", { data })
      this.dispatchEvent(event)
      if (this.onmessage) this.onmessage(event)
    }

    terminate() {
      this.inner.frameElement.remove()
    }
  }
  window.Worker = window.IFrameWorker

  function load(inner, url) {
    return new Promise((resolve, reject) => {
      const script = inner.document.createElement("script")
      script.onload = resolve
      script.onerror = reject
      script.src = url
      inner.document.body.appendChild(script)
    })
  }
})()

// Browsers start no worker from a file. Where the site is opened as files, the search runs in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    #frame = document.createElement("iframe");
    #ready;

    constructor(url) {
      super();
      this.#frame.hidden = true;
      document.body.append(this.#frame);
      const inside = this.#frame.contentWindow;
      inside.postMessage = (data) =>
        setTimeout(() => {
          const message = new MessageEvent("message", { data: structuredClone(data) });
          this.dispatchEvent(message);
          this.onmessage?.(message);
        });
      const script = inside.document.createElement("script");
      script.src = new URL(url, document.baseURI).href;
      this.#ready = new Promise((loaded) => (script.onload = loaded));
      inside.document.body.append(script);
    }

    postMessage(data) {
      const message = new MessageEvent("message", { data: structuredClone(data) });
      this.#ready.then(() => setTimeout(() => this.#frame.contentWindow.dispatchEvent(message)));
    }

    terminate() {
      this.#frame.remove();
    }
  };
}

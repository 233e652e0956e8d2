// Browsers refuse workers to pages that lie in the file system. There the worker of the search runs in a hidden frame,
// where it finds the same two functions: to post a message and to hear one.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const waiting = [];
      this.postMessage = (data) => waiting.push(data);
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.srcdoc = "<!doctype html><title>Search</title>";
      frame.onload = () => {
        const inside = frame.contentWindow;
        inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
        const script = inside.document.createElement("script");
        script.src = new URL(url, location);
        script.onload = () => {
          this.postMessage = (data) => inside.dispatchEvent(new inside.MessageEvent("message", { data }));
          waiting.forEach(this.postMessage);
        };
        inside.document.body.append(script);
      };
      document.body.append(frame);
    }
    terminate() {}
  };
}

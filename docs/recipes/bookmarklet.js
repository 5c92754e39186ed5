javascript:void (() => {
  const selected = String(getSelection()).trim();
  const text = selected || prompt("The sentence that needs references:") || "";
  if (text) open("http://127.0.0.1:8000/#" + new URLSearchParams({ context: text }), "citerec");
})();

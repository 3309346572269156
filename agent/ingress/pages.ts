/** A plain page of the ingress's own. `text` is HTML. */
export const page = (
  title: string,
  text: string,
) => `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${title}</title><style>:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;display:grid;place-content:center;min-height:90vh;margin:0;padding:1rem;text-align:center}h1{font-size:1.4rem;margin:0}p{opacity:.7}</style>
<h1>${title}</h1><p>${text}</p></html>`;

export const escaped = (text: string) =>
  text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

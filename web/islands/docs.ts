/** The reference's search: hides the guides and requests that do not contain every word typed. Without a script all are shown. */
class DocsSearch extends HTMLElement {
  connectedCallback(): void {
    const input = this.querySelector("input");
    input?.addEventListener("input", () => this.narrow(input.value));
    // What a link leads to is shown, whatever was searched for.
    this.closest(".docs")?.addEventListener("click", ({ target }) => {
      const link = target instanceof Element && target.closest<HTMLAnchorElement>('a[href^="#"]');
      if (!link || !document.getElementById(link.hash.slice(1))?.closest("[hidden]")) return;
      if (input) input.value = "";
      this.narrow("");
    });
    const asked = new URLSearchParams(location.search).get("q");
    if (input && asked !== null) input.value = asked;
    if (input && input.value !== "") this.narrow(input.value);
  }

  private narrow(typed: string): void {
    const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    for (const section of document.querySelectorAll<HTMLElement>("[data-topic]")) {
      let shown = 0;
      for (const entry of section.querySelectorAll<HTMLElement>("[data-entry]")) {
        const guide = entry instanceof HTMLDetailsElement ? "" : entry.textContent;
        const text = `${entry.dataset["entry"]} ${guide}`.toLowerCase();
        entry.hidden = !words.every((word) => text.includes(word));
        if (!entry.hidden) shown++;
      }
      section.hidden = words.length > 0 && shown === 0;
      found += shown;
    }
    const said = this.querySelector("[role=status]");
    if (said)
      said.textContent = words.length === 0 ? "" : found === 1 ? "1 entry found" : `${found} entries found`;
  }
}
customElements.define("docs-search", DocsSearch);

/** A link to an entry opens it, and everything around it. */
function openTarget(): void {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let at: Element | null = target; at; at = at.parentElement)
    if (at instanceof HTMLDetailsElement) at.open = true;
  if (target) target.scrollIntoView();
}
addEventListener("hashchange", openTarget);
openTarget();

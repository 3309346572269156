/** The price of the chosen plan and term, beside a form's button. Without it the invoice says the price. */
class PlanTotal extends HTMLElement {
  connectedCallback(): void {
    const form = this.closest("form");
    if (!form) return;
    const show = () => this.show(new FormData(form));
    form.addEventListener("change", show);
    show();
  }

  private show(fields: FormData): void {
    const prices = JSON.parse(this.dataset["prices"] ?? "{}") as Record<string, Record<string, number>>;
    const [packId, term] = [fields.get("packId"), fields.get("billingTerm")];
    const cents = typeof packId === "string" && typeof term === "string" ? prices[packId]?.[term] : undefined;
    if (cents === undefined) return;
    const currency = this.dataset["currency"] ?? "USD";
    const amount = new Intl.NumberFormat("en-US", { style: "currency", currency }).format(cents / 100);
    this.textContent = `${amount} now, then at the end of each term`;
  }
}
customElements.define("plan-total", PlanTotal);

/** Credits per 1,000 tokens of a model; an operator sets them (`CHAT_PRICES`). */
type ChatRates = { prompt: number; completion: number };
export type TokenUse = { promptTokens: number; completionTokens: number };
export type ChatPrices = {
  /** null: a message costs `least`, however long it is. */
  rates: ChatRates | null;
  /** Each answered message costs at least this. */
  least: number;
};

/** What one request to the model may take at most, and how many a message may cause, that of a summary included. */
export const requestTokens: TokenUse = { promptTokens: 8000, completionTokens: 1024 };
const requestsPerMessage = 9;

/** Whole credits, rounded up. */
export function chatPrice({ rates, least }: ChatPrices, used: TokenUse): number {
  if (!rates) return least;
  const { promptTokens, completionTokens } = used;
  const exact = (promptTokens * rates.prompt + completionTokens * rates.completion) / 1000;
  // 0.1 × 30 is a little more than 3 in binary.
  return Math.max(least, Math.ceil(exact - 1e-9));
}

const times = ({ promptTokens, completionTokens }: TokenUse, count: number): TokenUse => ({
  promptTokens: promptTokens * count,
  completionTokens: completionTokens * count,
});

export const plus = (one: TokenUse, other: TokenUse): TokenUse => ({
  promptTokens: one.promptTokens + other.promptTokens,
  completionTokens: one.completionTokens + other.completionTokens,
});

/** The price of a message that needs one request at its largest: whoever has it may begin. */
export const priceToBegin = (prices: ChatPrices): number => chatPrice(prices, requestTokens);
/** No message costs more. */
export const highestPrice = (prices: ChatPrices): number =>
  chatPrice(prices, times(requestTokens, requestsPerMessage));

/** Whether so many credits pay one more request at its largest, after those used. */
export const affords = (prices: ChatPrices, credits: number, used: TokenUse): boolean =>
  chatPrice(prices, plus(used, requestTokens)) <= credits;

import { describe, expect, it } from "vitest";
import { affords, chatPrice, highestPrice, priceToBegin } from "../../worker/domain/chat-price.ts";

const prices = { rates: { prompt: 0.1, completion: 1 }, least: 1 };
const used = (promptTokens: number, completionTokens: number) => ({ promptTokens, completionTokens });

describe("the price of a message", () => {
  it("is that of its tokens by the operator's table, in whole credits, at least the least", () => {
    expect(chatPrice(prices, used(0, 0))).toBe(1);
    expect(chatPrice(prices, used(9000, 100))).toBe(1);
    expect(chatPrice(prices, used(9001, 100))).toBe(2);
    expect(chatPrice(prices, used(30_000, 0))).toBe(3);
    expect(chatPrice({ rates: { prompt: 0, completion: 3 }, least: 1 }, used(9000, 2000))).toBe(6);
    expect(chatPrice({ rates: null, least: 4 }, used(99_999, 99_999))).toBe(4);
  });

  it("never exceeds the highest, whatever nine requests at their largest take", () => {
    expect(highestPrice(prices)).toBe(chatPrice(prices, used(9 * 8000, 9 * 1024)));
    expect(priceToBegin(prices)).toBe(2);
  });

  it("is paid before each further request", () => {
    expect(affords(prices, 2, used(0, 0))).toBe(true);
    expect(affords(prices, 2, used(2000, 0))).toBe(false);
    expect(affords(prices, 3, used(2000, 0))).toBe(true);
  });
});

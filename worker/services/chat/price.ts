import type { ChatPrice } from "../../../protocol/api/chat.ts";
import { availableCredits } from "../../billing/credits/balance.ts";
import { chatPricesOf } from "../../config.ts";
import { accountOf, type Ctx } from "../../ctx.ts";
import { highestPrice, priceToBegin } from "../../domain/chat-price.ts";

export async function getChatPrice(ctx: Ctx): Promise<ChatPrice> {
  const prices = chatPricesOf(ctx.config);
  const { MODEL_NAME, MODEL_URL } = ctx.config;
  return {
    model: (MODEL_URL !== undefined && MODEL_NAME) || null,
    leastCredits: prices.least,
    mostCredits: highestPrice(prices),
    neededCredits: priceToBegin(prices),
    per1000Tokens: prices.rates,
    balance: await availableCredits(ctx, accountOf(ctx)),
  };
}

import { expect, it } from "vitest";
import { searchWords } from "../../worker/domain/search-words.ts";

it.each([
  ["7", { number: 7, site: "" }, null],
  ["#7", { number: 7, site: "" }, null],
  ["My-App #12", { number: 12, site: "my-app" }, null],
  ["my-app#12", { number: 12, site: "my-app" }, null],
  // A name that ends in digits.
  ["app2", null, null],
  ["app 2", null, null],
  ["deadbeef", null, { from: "deadbeef", to: "deadbeefg" }],
  ["12345", { number: 12345, site: "" }, { from: "12345", to: "12345g" }],
  ["a".repeat(64), null, { from: "a".repeat(64), to: `${"a".repeat(64)}g` }],
  ["abc", null, null],
  ["xdeadbeef", null, null],
  ["deadbeefx", null, null],
  [" Deadbeef ", null, { from: "deadbeef", to: "deadbeefg" }],
  ["#", null, null],
  ["#7 days", null, null],
  ["9".repeat(40), null, { from: "9".repeat(40), to: `${"9".repeat(40)}g` }],
])("%s asks for this deployment and this commit", (query, deployment, commit) => {
  expect(searchWords(query)).toEqual({ text: query.trim().toLowerCase(), deployment, commit });
});

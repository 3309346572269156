import { expect, it } from "vitest";
import { splitAtAddresses } from "../../protocol/own-addresses.ts";

const origin = "https://berth.example.com";

it.each([
  ["Pay at https://berth.example.com/invoice/inv_1.", "https://berth.example.com/invoice/inv_1"],
  ["(https://berth.example.com/sites?sort=-name), then", "https://berth.example.com/sites?sort=-name"],
  ["**https://berth.example.com/deployments/dep_1#L2**", "https://berth.example.com/deployments/dep_1#L2"],
  ["https://berth.example.com/", "https://berth.example.com/"],
])("finds the address in %s", (text, address) => {
  const parts = splitAtAddresses(text, origin);
  expect([parts.length, parts[1], parts.join("")]).toEqual([3, address, text]);
});

it.each([
  "https://berth.example.com.other.example/invoice/inv_1",
  "https://berth.example.com@other.example/",
  "https://berthxexample.com/sites",
  "http://berth.example.com/sites",
  "https://other.example/sites",
])("finds none in %s", (text) => {
  expect(splitAtAddresses(text, origin)).toEqual([text]);
});

import { expect, it } from "vitest";
import { contextOf } from "../../worker/compose.ts";
import { bindings } from "./service.ts";

it("a context has no getter of its own: V8 would hold it, and its request, until the next full garbage collection", () => {
  const ctx = contextOf(bindings, { type: "system" }, () => undefined);
  const properties = Object.entries(Object.getOwnPropertyDescriptors(ctx));
  expect(properties.filter(([, property]) => !("value" in property))).toEqual([]);
});

import { expect, it } from "vitest";
import { contrastWithWhite } from "../../protocol/contrast.ts";

it.each([
  ["#ffffff", 1],
  ["#000000", 21],
  ["#0a0a0a", 19.8],
  ["#777777", 4.48],
  ["#767676", 4.54],
  ["#ff0000", 4],
  ["#00ff00", 1.37],
  ["#0000ff", 8.59],
])("white on %s has the contrast %d", (colour, contrast) => {
  expect(contrastWithWhite(colour)).toBeCloseTo(contrast, 2);
});

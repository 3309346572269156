import { expect, it } from "vitest";
import { inLabels } from "../../worker/pages/kit/setting-labels.ts";

it("a text of a host says plan on a page, and leaves names as they are", () => {
  expect(
    inLabels(
      "The app used more memory than its pack has: choose a larger pack, or use less than the site's pack has.",
    ),
  ).toBe(
    "The app used more memory than its plan has: choose a larger plan, or use less than the site's plan has.",
  );
  expect(inLabels("A pack for sites is on offer")).toBe("A plan for sites is on offer");
  expect(inLabels("You already have a site named pack.")).toBe("You already have a site named pack.");
  expect(inLabels("Change healthCheckPath.")).toBe("Change “Health check path”.");
});

import { Hono } from "hono";
import { describe, expect, it } from "vitest";
import { RememberingRouter } from "../../worker/router.ts";

describe("routes that are remembered", () => {
  const app = new Hono({ router: new RememberingRouter() })
    .use("/sites/*", async (c, next) => {
      await next();
      c.res.headers.set("Passed", "yes");
    })
    .get("/sites/all", (c) => c.text("all"))
    .get("/sites/:id", (c) => c.text(`site ${c.req.param("id")}`))
    .delete("/sites/:id", (c) => c.text(`removed ${c.req.param("id")}`));
  const answer = async (path: string, method = "GET") => {
    const response = await app.request(path, { method });
    return [response.status, await response.text(), response.headers.get("Passed")];
  };

  it("lead each method of a path to its own handlers, with its own parameters, the first time and later", async () => {
    for (let time = 0; time < 3; time++) {
      expect(await answer("/sites/all")).toEqual([200, "all", "yes"]);
      expect(await answer("/sites/a")).toEqual([200, "site a", "yes"]);
      expect(await answer("/sites/b%2Fc")).toEqual([200, "site b/c", "yes"]);
      expect(await answer("/sites/a", "DELETE")).toEqual([200, "removed a", "yes"]);
      expect(await answer("/unknown")).toEqual([404, "404 Not Found", null]);
    }
  });

  it("are right for more paths than are remembered, and for long ones", async () => {
    for (let at = 0; at < 2500; at++) expect((await answer(`/sites/${at}`))[1]).toBe(`site ${at}`);
    expect((await answer("/sites/7"))[1]).toBe("site 7");
    expect((await answer(`/sites/${"x".repeat(3000)}`))[1]).toBe(`site ${"x".repeat(3000)}`);
  });
});

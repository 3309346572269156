import { expect } from "vitest";
import { effectsOf, scene, useTool } from "../assistant.ts";
import { createSite, site } from "../service.ts";

effectsOf("runtime", {
  set_health_check: [
    "sets the path, and takes it away again",
    async () => {
      const { key } = await scene();
      const { siteId } = await createSite(key, { name: "healthy" });
      await useTool(key, "set_health_check", { site: "healthy", path: "/up" });
      expect((await site(key, siteId)).healthCheckPath).toBe("/up");
      await useTool(key, "set_health_check", { site: "healthy", path: null });
      expect((await site(key, siteId)).healthCheckPath).toBeNull();
    },
  ],
  scale_site: [
    "sets the number of replicas",
    async () => {
      const { key } = await scene();
      const { siteId } = await createSite(key, { name: "wide" });
      await useTool(key, "scale_site", { site: "wide", replicas: 2 });
      expect((await site(key, siteId)).replicas).toBe(2);
    },
  ],
});

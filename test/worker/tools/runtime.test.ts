import { expect } from "vitest";
import { answerNext, effectsOf, scene, useTool, serving } from "../assistant.ts";
import { createSite, jobOf, runningSite, site } from "../service.ts";

effectsOf("runtime", {
  set_health_check: [
    "sets the path, the interval and the kind, and takes the path away again",
    async () => {
      const { key } = await scene();
      const { siteId } = await createSite(key, { name: "healthy" });
      await useTool(key, "set_health_check", { site: "healthy", path: "/up" });
      expect((await site(key, siteId)).healthCheckPath).toBe("/up");
      const check = { kind: "tcp" as const, intervalSeconds: 60, timeoutSeconds: 2, failures: 5 };
      await useTool(key, "set_health_check", { site: "healthy", check });
      expect(await site(key, siteId)).toMatchObject({ healthCheckPath: "/up", healthCheck: check });
      await useTool(key, "set_health_check", { site: "healthy", path: null });
      expect(await site(key, siteId)).toMatchObject({ healthCheckPath: null, healthCheck: check });
    },
  ],
  set_lifecycle_policy: [
    "restarts the running version with the policy",
    async () => {
      const { key, host } = await scene();
      const { siteId } = await runningSite(key, host, { name: "careful" });
      const policy = { restartPolicy: "never" as const, drainSeconds: 60, stopTimeoutSeconds: 30 };
      const { result } = await useTool(key, "set_lifecycle_policy", { site: "careful", policy });
      expect(result).toMatchObject({ lifecycle: policy, applied: "now" });
      const { job } = await jobOf(host, "site.restart");
      expect(job.args.run.lifecycle).toEqual(policy);
      expect((await site(key, siteId)).lifecycle).toEqual(policy);
    },
  ],
  run_health_check: [
    "has the host probe the site now",
    async () => {
      const { key, host } = await scene();
      const { siteId } = await runningSite(key, host, { name: "probed" });
      const using = useTool(key, "run_health_check", { site: "probed" });
      const health = { route: "stopped" as const, hostnames: [], containers: [], diskFreeMb: 5 };
      const question = await answerNext(host, { kind: "health", health });
      expect(question).toEqual({ kind: "health", siteId, port: 3000 });
      expect((await using).result).toEqual(health);
    },
  ],
  probe_url: [
    "requests the site's own names, and follows no redirect to another",
    async () => {
      const { key, host } = await scene();
      const { siteId } = await runningSite(key, host, { name: "visited" });
      const own = new URL((await site(key, siteId)).url);
      const asked: string[] = [];
      serving(own.host, (request) => {
        const { pathname } = new URL(request.url);
        asked.push(pathname);
        return pathname === "/"
          ? new Response(null, { status: 301, headers: { Location: "/home" } })
          : new Response(null, { status: 302, headers: { Location: "http://169.254.169.254/latest" } });
      });
      serving("169.254.169.254", () => {
        asked.push("elsewhere");
        return new Response("a host's secret");
      });
      const { result } = await useTool(key, "probe_url", { site: "visited" });
      expect(result).toMatchObject({
        reachable: true,
        status: 302,
        requests: [
          { status: 301, location: "/home" },
          { status: 302, location: "http://169.254.169.254/latest" },
        ],
      });
      expect(asked).toEqual(["/", "/home"]);
    },
  ],
  scale_site: [
    "runs a site in so many replicas at once, and one that does not run yet from its first deployment",
    async () => {
      const { key, host } = await scene();
      const { siteId } = await createSite(key, { name: "new" });
      await useTool(key, "scale_site", { site: "new", replicas: 2 });
      expect((await site(key, siteId)).replicas).toBe(2);
      await runningSite(key, host, { name: "wide" });
      await useTool(key, "scale_site", { site: "wide", replicas: 2 });
      expect((await jobOf(host, "site.restart")).job.args.run.replicas).toBe(2);
    },
  ],
});

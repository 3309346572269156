import { describe, expect, it } from "vitest";
import { databaseStatuses, siteStatuses } from "../../protocol/states.ts";
import { refusedAction } from "../../worker/domain/refused-action.ts";

const told = (
  action: Parameters<typeof refusedAction>[0],
  status: (typeof siteStatuses)[number],
  wanted: "RUNNING" | "STOPPED" = "RUNNING",
) => refusedAction(action, { what: "site", status, wanted });

describe("an action that a site's state does not allow is refused", () => {
  it("with what is under way", () => {
    expect(told("stop", "RUNNING", "STOPPED")).toMatch(/is already being stopped/);
    expect(told("restart", "RUNNING", "STOPPED")).toMatch(/is being stopped: start it again/);
    expect(told("restart", "DEPLOYING")).toMatch(/is being deployed/);
    expect(told("start", "STOPPED")).toMatch(/is already being started/);
    expect(told("start", "DELETING")).toBe("This site is being deleted.");
    for (const action of ["start", "restart"] as const)
      expect(refusedAction(action, { what: "database", status: "PROVISIONING", wanted: "RUNNING" })).toBe(
        "This database is being provisioned: wait until it runs.",
      );
    for (const status of ["DEPLOYING", "PROVISIONING"] as const)
      expect(refusedAction("stop", { what: "database", status, wanted: "STOPPED" })).toBe(
        "This database is already being stopped.",
      );
  });

  it("with what to do instead", () => {
    expect(told("restart", "STOPPED", "STOPPED")).toMatch(/is STOPPED: start it instead/);
    expect(told("restart", "FAILED")).toMatch(/start it instead/);
    expect(told("start", "RUNNING")).toMatch(/is already running/);
    expect(told("stop", "STOPPED", "STOPPED")).toMatch(/is already stopped/);
    expect(told("stop", "FAILED")).toMatch(/there is nothing to stop/);
  });

  it("in a whole sentence, whatever state it is in", () => {
    for (const status of [...siteStatuses, ...databaseStatuses])
      for (const wanted of ["RUNNING", "STOPPED"] as const)
        for (const action of ["start", "stop", "restart"] as const)
          expect(refusedAction(action, { what: "database", status, wanted })).toMatch(/^This database .*\.$/);
  });
});

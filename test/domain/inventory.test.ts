import { describe, expect, it } from "vitest";
import type { HeldDatabase, HeldSite } from "../../protocol/agent/inventory.ts";
import { formatId } from "../../protocol/ids.ts";
import {
  databaseVerdict,
  siteVerdict,
  type DatabaseRecord,
  type SiteRecord,
} from "../../worker/domain/inventory.ts";

const deployment = (number: number) => formatId("deployment", number, new Uint8Array(10));
const [old, newer] = [deployment(1), deployment(2)];
const known = { arePaymentsRead: true };

const record = (changes: Partial<SiteRecord> = {}): SiteRecord => ({
  place: "here",
  status: "RUNNING",
  wanted: "RUNNING",
  currentDeploymentId: old,
  hasFailed: false,
  wasDeployedLately: false,
  ...changes,
});
const site = (changes: Partial<HeldSite> = {}): HeldSite => ({
  id: formatId("site", 1, new Uint8Array(10)),
  serving: [],
  unrouted: [],
  memoryMb: 0,
  ...changes,
});
const serves = (...serving: HeldSite["serving"]) => site({ serving });
const runsAlone = site({ unrouted: [{ containerId: "c", deploymentId: newer }] });

describe("of a site, what is done about it when the host and the record differ:", () => {
  it.each([
    ["the record's version serves", record(), serves(old), "same"],
    ["something runs beside it", record(), site({ ...runsAlone, serving: [old] }), "retire"],
    ["it was deleted since", record(), undefined, "start"],
    ["it was stopped since", record(), site(), "start"],
    ["nobody is led to what runs", record(), runsAlone, "start"],
    ["another version serves", record(), serves(newer), "restart"],
    ["another version serves beside it", record(), serves(old, newer), "restart"],
    ["none is in service", record({ currentDeploymentId: null }), undefined, "same"],
    [
      "another version serves, and the record's did not start",
      record({ hasFailed: true }),
      serves(newer),
      "same",
    ],
    ["it is to be stopped", record({ wanted: "STOPPED" }), undefined, "same"],
    ["it was started since", record({ status: "STOPPED" }), serves(old), "stop"],
    ["it was paid since", record({ status: "SUSPENDED" }), serves(old), "stop"],
    ["it is stopped", record({ status: "STOPPED" }), site(), "same"],
    ["it was mended since", record({ status: "FAILED" }), serves(old), "start"],
    ["it was mended by another version", record({ status: "FAILED" }), serves(newer), "deploy"],
    ["that was just tried", record({ status: "FAILED", wasDeployedLately: true }), serves(newer), "same"],
    [
      "it was said to have failed, and runs",
      record({ status: "FAILED", currentDeploymentId: newer }),
      runsAlone,
      "start",
    ],
    ["what did not come up was left behind", record({ status: "FAILED" }), runsAlone, "setAside"],
    [
      "what nobody knows was left behind, and none is in service",
      record({ status: "FAILED", currentDeploymentId: null }),
      site({ unrouted: [{ containerId: "c", deploymentId: null }] }),
      "setAside",
    ],
    ["it failed", record({ status: "FAILED" }), undefined, "same"],
    ["its deletion waits", record({ status: "DELETING" }), serves(old), "same"],
    ["its deployment waits", record({ status: "DEPLOYING" }), serves(old), "same"],
    ["it was created since", undefined, serves(old), "setAside"],
    ["what is left of it is aside", undefined, site(), "same"],
    ["it is another host's, as that says", record({ place: "elsewhere" }), serves(old), "setAside"],
    ["it may be another host's", record({ place: "unclear" }), serves(newer), "same"],
    ["no host has it", record({ place: "nowhere" }), serves(newer), "same"],
    ["it is unpaid", record({ status: "PENDING", place: "nowhere" }), serves(newer), "setAside"],
  ] as const)("%s", (_, row, held, verdict) => {
    expect(siteVerdict(row, held, known)).toBe(verdict);
  });

  it("one that may have been paid serves on until the processor was asked", () => {
    const unpaid = record({ status: "PENDING", place: "nowhere" });
    expect(siteVerdict(unpaid, serves(newer), { arePaymentsRead: false })).toBe("same");
  });
});

const restored = "job_1";
const database = (changes: Partial<DatabaseRecord> = {}): DatabaseRecord => ({
  place: "here",
  status: "RUNNING",
  wanted: "RUNNING",
  wasHere: false,
  hasRun: true,
  volume: null,
  ...changes,
});
const has = (changes: Partial<HeldDatabase> = {}): HeldDatabase => ({
  id: formatId("database", 1, new Uint8Array(10)),
  running: true,
  out: false,
  volumes: [null],
  memoryMb: 256,
  ...changes,
});
const down = has({ running: false });

const removed = { place: "nowhere", wasHere: true, status: "FAILED", hasRun: false } as const;

describe("of a database:", () => {
  it.each([
    ["it runs", database(), has(), "same"],
    ["its container is gone", database(), down, "start"],
    ["it kept exiting, as its host says", database(), has({ running: false, out: true }), "same"],
    ["its volume is gone", database(), undefined, "lost"],
    ["the volume of one that is stopped is gone", database({ status: "STOPPED" }), undefined, "lost"],
    ["that is known", database({ status: "FAILED" }), undefined, "same"],
    ["it was restored into since", database(), has({ volumes: [restored] }), "adopt"],
    [
      "a restore has changed over",
      database({ volume: restored }),
      has({ volumes: [null, restored] }),
      "same",
    ],
    ["it was started since", database({ status: "STOPPED" }), has(), "stop"],
    ["it is stopped", database({ status: "STOPPED" }), down, "same"],
    ["it was mended since", database({ status: "FAILED" }), has(), "start"],
    ["it was never provisioned", database({ status: "FAILED", hasRun: false }), undefined, "same"],
    ["it was created since", undefined, has(), "setAside"],
    ["what is left of it is aside", undefined, down, "same"],
    ["it is another host's, as that says", database({ place: "elsewhere" }), has(), "setAside"],
    ["it may be another host's", database({ place: "unclear" }), down, "same"],
    ["it is to be stopped", database({ wanted: "STOPPED" }), down, "same"],
    [
      "it is unpaid and does not run",
      database({ status: "PENDING", place: "nowhere", hasRun: false }),
      down,
      "same",
    ],
    [
      "it is unpaid and not there",
      database({ status: "PENDING", place: "nowhere", hasRun: false }),
      undefined,
      "same",
    ],
    ["its provisioning waits", database({ status: "PROVISIONING" }), down, "same"],
    ["its deletion waits, and it runs", database({ status: "DELETING" }), has(), "same"],
    ["it came up after its deadline", database({ status: "FAILED", hasRun: false }), has(), "start"],
    ["it is coming up", database({ status: "PROVISIONING", hasRun: false }), has(), "same"],
    ["it is unpaid", database({ status: "PENDING", place: "nowhere", hasRun: false }), has(), "setAside"],
    ["its deletion waits", database({ status: "DELETING" }), undefined, "same"],
    ["its host was removed, and is back", database(removed), has(), "adopt"],
    [
      "its host was removed, and is back with what it last ran on",
      database(removed),
      has({ volumes: [restored] }),
      "adopt",
    ],
    [
      "its host was removed, and has more of it",
      database(removed),
      has({ volumes: [null, restored] }),
      "same",
    ],
    [
      "its host was removed while it was unpaid",
      database({ ...removed, status: "SUSPENDED" }),
      down,
      "adopt",
    ],
    [
      "its host was removed, and another one claims it",
      database({ ...removed, wasHere: false }),
      has(),
      "same",
    ],
    [
      "its host was removed, and it starts anew",
      database({ ...removed, status: "PROVISIONING" }),
      has(),
      "same",
    ],
    [
      "its host was removed, and it is to be deleted",
      database({ ...removed, status: "DELETING" }),
      has(),
      "same",
    ],
  ] as const)("%s", (_, row, held, verdict) => {
    expect(databaseVerdict(row, held, known)).toBe(verdict);
  });

  it("one that may have been paid serves on until the processor was asked", () => {
    const unpaid = database({ status: "PENDING", place: "nowhere", hasRun: false });
    expect(databaseVerdict(unpaid, has(), { arePaymentsRead: false })).toBe("same");
  });
});

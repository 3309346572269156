import { existsSync } from "node:fs";
import { expect, it } from "vitest";
import { agentIdOf, removeSites } from "../../scripts/lib/engine-objects.ts";
import { bridgePrefix } from "../../agent/isolation/rules.ts";
import { ownPrograms } from "../support/own-programs.ts";

const programs = ownPrograms();

it("the end of a service removes a network though Docker could not record that its last container left it", async () => {
  const [freed, removed] = [programs.pathOf("freed"), programs.pathOf("removed")];
  programs.add(
    "docker",
    `case "$*" in
      "network ls "*) echo 0123 ;;
      "network inspect --format {{.Name}} "*) echo "berth-acc_1 ${bridgePrefix(agentIdOf("token"))}1" ;;
      "network inspect --format {{range "*) [ -e ${freed} ] || echo "ep-0123 berth-site_1" ;;
      "network inspect "*) [ ! -e ${removed} ] ;;
      "network disconnect --force berth-acc_1 berth-site_1") : > ${freed} ;;
      "network rm berth-acc_1") [ -e ${freed} ] && : > ${removed} ;;
    esac`,
  );
  await removeSites("token");
  expect(existsSync(removed)).toBe(true);
});

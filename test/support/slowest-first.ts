import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Files that take minutes, most of it waiting. Begun last, they would keep one service busy while the others have ended. */
const slowest = [
  "test/e2e/chat-effects.test.ts",
  "test/e2e/hosts.test.ts",
  "test/e2e/systemd-host.test.ts",
  "test/e2e/domains.test.ts",
  "test/e2e/dashboard-pages.test.ts",
  "test/e2e/databases.test.ts",
  "test/e2e/chat-facts.test.ts",
  "test/e2e/running.test.ts",
  "test/agent/database-outages.engine.test.ts",
  "test/agent/backups.engine.test.ts",
  "test/agent/databases.engine.test.ts",
];

/** vitest begins with those that took longest last time, which a new checkout does not know. */
export class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => {
      const at = slowest.findIndex((file) => moduleId.endsWith(file));
      return at === -1 ? slowest.length : at;
    };
    return (await super.sort(files)).toSorted((one, other) => place(one) - place(other));
  }
}

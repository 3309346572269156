import type { Backup } from "../../../protocol/api/backups.ts";
import type { Word } from "./words.ts";
import { Time } from "./parts.tsx";

export const backupWords: Record<Backup["status"], Word> = {
  RUNNING: { tone: "busy", label: "Being made" },
  STORED: { tone: "soft", label: "Not verified yet" },
  VERIFIED: { tone: "good", label: "Verified" },
  FAILED: { tone: "bad", label: "Failed" },
};

export const triggerWords: Record<Backup["trigger"], string> = {
  api: "requested",
  chat: "requested through the assistant",
  schedule: "scheduled",
  "before-restore": "before a restore",
  final: "final, before deletion",
};

/** The newest backup in a few words. */
export const backupsLine = (latest: Backup | undefined) =>
  latest === undefined ? (
    "none yet"
  ) : (
    <>
      {backupWords[latest.status].label.toLowerCase()}, {<Time at={latest.createdAt} />}
    </>
  );

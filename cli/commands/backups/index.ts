import { group } from "../../command.ts";
import { createBackup } from "./create.ts";
import { downloadBackup } from "./download.ts";
import { listBackups } from "./list.ts";
import { deleteBackup } from "./remove.ts";
import { verifyBackup } from "./verify.ts";

export const backups = group("backups", "Backups of databases", [
  listBackups,
  createBackup,
  verifyBackup,
  downloadBackup,
  deleteBackup,
]);

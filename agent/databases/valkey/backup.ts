export { redis as valkey } from "../redis/backup.ts";

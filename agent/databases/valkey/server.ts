export { redis as valkey } from "../redis/server.ts";

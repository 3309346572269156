export { redis as valkey } from "../redis/inspect.ts";

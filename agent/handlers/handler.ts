import type { JobArgs, JobKind, JobResult } from "../../protocol/agent/jobs.ts";
import type { Host } from "../host.ts";
import type { JobRun } from "../job.ts";

export type Handler<K extends JobKind> = (host: Host, args: JobArgs<K>, run: JobRun) => Promise<JobResult<K>>;
export type Handlers = { [K in JobKind]: Handler<K> };

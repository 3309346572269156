/** What needs zod at run time: apart from index.ts, as zod takes longer to load than most commands take. */
import "../protocol/issue-messages.ts";
export { ProjectFile } from "../protocol/api/project-file.ts";
export {
  Allowance,
  costOf,
  maxPayloadBytes,
  piecesOf,
  streamCloseCodes,
  ToStreamClient,
} from "../protocol/api/streams.ts";

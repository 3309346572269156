import * as z from "zod";

/** The facts that can be read from a Git host's delivery. */
export type PushEvent = {
  /** `X-GitHub-Event` or its equivalent, null if absent; "delete" for a push that deletes a branch. */
  event: string | null;
  /** The payload's `ref`, such as `refs/heads/main`. */
  ref: string | null;
  defaultBranch: string | null;
};

/** Header names of GitHub (Gitea, Forgejo), GitLab and Bitbucket (Data Center). */
const pushes: (string | null)[] = [
  null,
  "push",
  "Push Hook",
  "Tag Push Hook",
  "repo:push",
  "repo:refs_changed",
];
/** Events without a source change, and branch creation and deletion, which a push reports as well. */
const aboutNoSource =
  /^(?:ping|diagnostics:ping|pull_?request|pr:|git\.pullrequest|merge request|(?:confidential )?(?:issue|note)|discussion|commit_comment|star|watch|repo:(?:fork|comment|commit_)|fork|wiki|gollum|create|delete|label|milestone|member|emoji)/i;

/** Skips events that are not a push, and pushes to other branches than the site's. Anything unclear deploys. */
export function pushSkips({ event, ref, defaultBranch }: PushEvent, branch: string | null): boolean {
  if (event !== null && aboutNoSource.test(event)) return true;
  if (ref === null || !pushes.includes(event)) return false;
  if (ref.startsWith("refs/tags/")) return true;
  const wanted = branch ?? defaultBranch;
  return wanted !== null && ref !== `refs/heads/${wanted}`;
}

const text = z.string().nullable().catch(null);
const defaultOf = z.object({ default_branch: text }).nullable().catch(null);
/** A deleted branch has no `new`, or the type DELETE. */
const change = z.union([
  z.object({ new: z.object({ type: z.string(), name: z.string() }).nullable() }),
  z.object({ ref: z.object({ id: z.string() }), type: z.string() }),
]);
const Payload = z.object({
  ref: text,
  deleted: z.boolean().catch(false),
  after: text,
  repository: defaultOf,
  /** GitLab's field. */
  project: defaultOf,
  /** Bitbucket's field; a delivery with several pushes is inconclusive. */
  push: z
    .object({ changes: z.tuple([change]) })
    .nullable()
    .catch(null),
  changes: z.tuple([change]).nullable().catch(null),
});

/** Bitbucket Data Center's field. */
const changeOf = ({ push, changes }: z.infer<typeof Payload>) => (push?.changes ?? changes ?? [])[0];

function refOf(payload: z.infer<typeof Payload>): string | null {
  const only = changeOf(payload);
  if (!only) return payload.ref;
  if ("ref" in only) return only.ref.id;
  return only.new && `refs/${only.new.type === "tag" ? "tags" : "heads"}/${only.new.name}`;
}

function deletes(payload: z.infer<typeof Payload>): boolean {
  const only = changeOf(payload);
  if (only) return "ref" in only ? only.type === "DELETE" : only.new === null;
  const { deleted, after } = payload;
  return deleted || (after !== null && /^0{40,64}$/.test(after));
}

/** Parses a delivery. The body is optional, so one that is not such JSON yields no facts. */
export function readPushEvent(event: string | null, body: string): PushEvent {
  const nothing = { event, ref: null, defaultBranch: null };
  // GitHub sends a form by default.
  const json = body.startsWith("payload=") ? (new URLSearchParams(body).get("payload") ?? "") : body;
  if (!json.startsWith("{")) return nothing;
  try {
    const payload = Payload.parse(JSON.parse(json));
    return {
      event: deletes(payload) ? "delete" : event,
      ref: refOf(payload),
      defaultBranch: payload.repository?.default_branch ?? payload.project?.default_branch ?? null,
    };
  } catch {
    return nothing;
  }
}

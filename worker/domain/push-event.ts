import * as z from "zod";

/** The facts that can be read from a Git host's delivery. */
export type PushEvent = {
  /** `X-GitHub-Event` or its equivalent, null if absent. */
  event: string | null;
  /** What was pushed and not deleted, such as `refs/heads/main`; null if the payload does not say. */
  refs: string[] | null;
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
export function pushSkips({ event, refs, defaultBranch }: PushEvent, branch: string | null): boolean {
  if (refs?.length === 0 || (event !== null && aboutNoSource.test(event))) return true;
  if (refs === null || !pushes.includes(event)) return false;
  if (refs.every((ref) => ref.startsWith("refs/tags/"))) return true;
  const wanted = branch ?? defaultBranch;
  return wanted !== null && !refs.includes(`refs/heads/${wanted}`);
}

const text = z.string().nullable().catch(null);
const defaultOf = z.object({ default_branch: text }).nullable().catch(null);
/** A deleted branch has no `new`, or the type DELETE. */
const Change = z.union([
  z.object({ new: z.object({ type: z.string(), name: z.string() }).nullable() }),
  z.object({ ref: z.object({ id: z.string() }), type: z.string() }),
]);
const changes = z.array(Change).min(1);
const Payload = z.object({
  ref: text,
  deleted: z.boolean().catch(false),
  after: text,
  repository: defaultOf,
  /** GitLab's field. */
  project: defaultOf,
  /** Bitbucket's field. */
  push: z.object({ changes }).nullable().catch(null),
  /** Bitbucket Data Center's field. */
  changes: changes.nullable().catch(null),
});

function refOf(one: z.infer<typeof Change>): string | null {
  if ("ref" in one) return one.type === "DELETE" ? null : one.ref.id;
  return one.new && `refs/${one.new.type === "tag" ? "tags" : "heads"}/${one.new.name}`;
}

function refsOf(payload: z.infer<typeof Payload>): string[] | null {
  const all = payload.push?.changes ?? payload.changes;
  if (all) return all.map(refOf).filter((ref) => ref !== null);
  const { ref, deleted, after } = payload;
  if (deleted || (after !== null && /^0{40,64}$/.test(after))) return [];
  return ref === null ? null : [ref];
}

/** Parses a delivery. The body is optional, so one that is not such JSON yields no facts. */
export function readPushEvent(event: string | null, body: string): PushEvent {
  const nothing = { event, refs: null, defaultBranch: null };
  // GitHub sends a form by default.
  const json = body.startsWith("payload=") ? (new URLSearchParams(body).get("payload") ?? "") : body;
  if (!json.startsWith("{")) return nothing;
  try {
    const payload = Payload.parse(JSON.parse(json));
    return {
      event,
      refs: refsOf(payload),
      defaultBranch: payload.repository?.default_branch ?? payload.project?.default_branch ?? null,
    };
  } catch {
    return nothing;
  }
}

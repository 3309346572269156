import * as z from "zod";

/** What a Git host's delivery says, as far as anything can be told from it. */
export type PushEvent = {
  /** `X-GitHub-Event` (or its kin), null when absent; of a push that deletes, "delete". */
  event: string | null;
  /** `ref` of the payload, such as `refs/heads/main`. */
  ref: string | null;
  defaultBranch: string | null;
};

/** Of GitHub (Gitea, Forgejo), GitLab and Bitbucket (Data Center). */
const pushes: (string | null)[] = [
  null,
  "push",
  "Push Hook",
  "Tag Push Hook",
  "repo:push",
  "repo:refs_changed",
];
/** Talk about the source, and branches that come and go, of which a push tells as well. */
const aboutNoSource =
  /^(?:ping|diagnostics:ping|pull_?request|merge request|(?:confidential )?(?:issue|note)|discussion|commit_comment|star|watch|repo:(?:fork|commit_)|fork|wiki|gollum|create|delete|label|milestone|member|emoji)/i;

/** What is no push, or one to another branch than the site's, deploys nothing. Anything unclear deploys. */
export function pushSkips({ event, ref, defaultBranch }: PushEvent, branch: string | null): boolean {
  if (event !== null && aboutNoSource.test(event)) return true;
  if (ref === null || !pushes.includes(event)) return false;
  if (ref.startsWith("refs/tags/")) return true;
  const wanted = branch ?? defaultBranch;
  return wanted !== null && ref !== `refs/heads/${wanted}`;
}

const text = z.string().nullable().catch(null);
const defaultOf = z.object({ default_branch: text }).nullable().catch(null);
/** One that is deleted has no `new`, or the type DELETE. */
const change = z.union([
  z.object({ new: z.object({ type: z.string(), name: z.string() }).nullable() }),
  z.object({ ref: z.object({ id: z.string() }), type: z.string() }),
]);
const Payload = z.object({
  ref: text,
  deleted: z.boolean().catch(false),
  after: text,
  repository: defaultOf,
  /** GitLab's. */
  project: defaultOf,
  /** Bitbucket's; several in one push say nothing. */
  push: z
    .object({ changes: z.tuple([change]) })
    .nullable()
    .catch(null),
  changes: z.tuple([change]).nullable().catch(null),
});

/** Bitbucket's. */
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

/** Reads a delivery; a body that is no such JSON says nothing, as the body is not required. */
export function readPushEvent(event: string | null, body: string): PushEvent {
  const nothing = { event, ref: null, defaultBranch: null };
  // GitHub's hooks send a form unless they are told otherwise.
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

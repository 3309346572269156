import * as z from "zod";

/** The facts that can be read from a Git host's delivery. */
export type PushEvent = {
  /** `X-GitHub-Event` or its equivalent, or what Azure says in the body; null if absent. */
  event: string | null;
  /** What was pushed and not deleted, such as `refs/heads/main`; null if the payload does not say. */
  refs: string[] | null;
  defaultBranch: string | null;
};

/** What GitHub (Gitea, Forgejo), GitLab, Bitbucket (Data Center) and Azure call one. */
const pushes: (string | null)[] = [
  null,
  "push",
  "Push Hook",
  "Tag Push Hook",
  "repo:push",
  "repo:refs_changed",
  "git.push",
];
/** Events without a source change, and branch creation and deletion, which a push reports as well. */
const aboutNoSource =
  /^(?:ping|diagnostics:ping|pull_?request|pr:|git\.(?:pullrequest|repo)|ms\.vss-code|workitem|merge request|(?:confidential )?(?:issue|note)|discussion|commit_comment|star|watch|repo:(?:fork|comment|commit_)|fork|wiki|gollum|create|delete|label|milestone|member|emoji)/i;

/** Skips events that are not a push, and pushes to other branches than the site's. Anything unclear deploys. */
export function pushSkips({ event, refs, defaultBranch }: PushEvent, branch: string | null): boolean {
  if (refs?.length === 0 || (event !== null && aboutNoSource.test(event))) return true;
  if (refs === null || !pushes.includes(event)) return false;
  if (refs.every((ref) => ref.startsWith("refs/tags/"))) return true;
  const wanted = branch ?? defaultBranch;
  return wanted !== null && !refs.includes(`refs/heads/${wanted}`);
}

/** The events of Azure's repositories and work items; it sends no header. */
const azureEvent = /^(?:git|ms\.vss-code|workitem)\..*/s;

const text = z.string().nullable().catch(null);
const defaultOf = z.object({ default_branch: text }).nullable().catch(null);
/** A deleted branch has no `new`, or the type DELETE. */
const Change = z.union([
  z.object({ new: z.object({ type: z.string(), name: z.string() }).nullable() }),
  z.object({ ref: z.object({ id: z.string() }), type: z.string() }),
]);
const changes = z.array(Change).min(1);
const AzurePush = z.object({
  refUpdates: z.array(z.object({ name: z.string(), newObjectId: z.string() })).min(1),
  repository: z.object({ defaultBranch: text }).nullable().catch(null),
});
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
  /** Azure's fields. */
  eventType: text,
  resource: AzurePush.nullable().catch(null),
});

function refOf(one: z.infer<typeof Change>): string | null {
  if ("ref" in one) return one.type === "DELETE" ? null : one.ref.id;
  return one.new && `refs/${one.new.type === "tag" ? "tags" : "heads"}/${one.new.name}`;
}

const isNothing = (commit: string): boolean => /^0{40,64}$/.test(commit);

function refsOf(payload: z.infer<typeof Payload>, event: string | null): string[] | null {
  if (event === "git.push")
    return (
      payload.resource?.refUpdates.flatMap((one) => (isNothing(one.newObjectId) ? [] : one.name)) ?? null
    );
  // Anybody may send JSON with fields of these names, so that only a whole ref tells that it is a Git host's.
  if (event === null && payload.ref?.startsWith("refs/") !== true) return null;
  const all = payload.push?.changes ?? payload.changes;
  if (all) return all.map(refOf).filter((ref) => ref !== null);
  const { ref, deleted, after } = payload;
  if (deleted || (after !== null && isNothing(after))) return [];
  return ref === null ? null : [ref];
}

/** Parses a delivery. The body is optional, so one that is not such JSON yields no facts. */
export function readPushEvent(header: string | null, body: string): PushEvent {
  const nothing = { event: header, refs: null, defaultBranch: null };
  // GitHub sends a form by default.
  const json = body.startsWith("payload=") ? (new URLSearchParams(body).get("payload") ?? "") : body;
  if (!json.startsWith("{")) return nothing;
  try {
    const payload = Payload.parse(JSON.parse(json));
    const event = header ?? azureEvent.exec(payload.eventType ?? "")?.[0] ?? null;
    const azureDefault = payload.resource?.repository?.defaultBranch?.replace(/^refs\/heads\//, "");
    return {
      event,
      refs: refsOf(payload, event),
      defaultBranch:
        payload.repository?.default_branch ?? payload.project?.default_branch ?? azureDefault ?? null,
    };
  } catch {
    return nothing;
  }
}

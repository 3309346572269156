/** What a Git host's delivery says, as far as anything can be told from it. */
export type PushEvent = {
  /** `X-GitHub-Event` (or its kin), null when absent. */
  event: string | null;
  /** `ref` of the payload, such as `refs/heads/main`. */
  ref: string | null;
  defaultBranch: string | null;
};

/** A ping, or a push to another branch than the site's, deploys nothing. Anything unclear deploys. */
export function pushSkips({ event, ref, defaultBranch }: PushEvent, branch: string | null): boolean {
  if (event === "ping") return true;
  if (ref === null || !(event === null || event === "push" || event === "Push Hook")) return false;
  const wanted = branch ?? defaultBranch;
  return wanted !== null && ref !== `refs/heads/${wanted}`;
}

const text = (value: unknown) => (typeof value === "string" ? value : null);

/** Reads a delivery; a body that is no such JSON says nothing, as the body is not required. */
export function readPushEvent(event: string | null, body: string): PushEvent {
  const nothing = { event, ref: null, defaultBranch: null };
  // GitHub's hooks send a form unless they are told otherwise.
  const json = body.startsWith("payload=") ? (new URLSearchParams(body).get("payload") ?? "") : body;
  if (!json.startsWith("{")) return nothing;
  try {
    const payload = JSON.parse(json) as { ref?: unknown; repository?: { default_branch?: unknown } | null };
    return { event, ref: text(payload.ref), defaultBranch: text(payload.repository?.default_branch) };
  } catch {
    return nothing;
  }
}

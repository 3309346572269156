import type { Key } from "../../protocol/api/keys.ts";
import { Layout } from "./layout.tsx";

const day = (time: string) => time.slice(0, 10);

/** API keys and the password. `made` is a new key, shown this once. */
export const AccountPage = ({
  keys,
  next,
  once,
  made,
  notice,
}: {
  keys: Key[];
  /** The cursor of the next page. */
  next: string | null;
  /** Distinguishes the forms of this page from those of another rendering. */
  once: string;
  made: { name: string; key: string } | null;
  notice: { tone: "good" | "warn"; text: string } | null;
}) => (
  <Layout title="Account" signedIn>
    {notice && (
      <p class={`note ${notice.tone}`} role={notice.tone === "warn" ? "alert" : "status"}>
        {notice.text}
      </p>
    )}
    <h1>API keys</h1>
    {made && (
      <div class="note" role="status">
        The key “{made.name}”, shown this once:
        <code class="secret">{made.key}</code>
      </div>
    )}
    {keys.length === 0 && <p>No keys yet.</p>}
    <table>
      {keys.map((key) => (
        <tr>
          <td>
            <strong>{key.name}</strong>
            <br />
            <span class="soft">
              <code>{key.start}…</code> · created {day(key.createdAt)} ·{" "}
              {key.lastUsedAt ? `last used ${day(key.lastUsedAt)}` : "never used"}
            </span>
          </td>
          <td>
            <form method="post" action="/account/keys/revoke">
              <input type="hidden" name="id" value={key.id} />
              <button class="small" type="submit" aria-label={`Revoke ${key.name}`}>
                Revoke
              </button>
            </form>
          </td>
        </tr>
      ))}
    </table>
    {next !== null && (
      <p class="links">
        <a href={`/account?cursor=${encodeURIComponent(next)}`}>Older keys</a>
      </p>
    )}
    <form method="post" action="/account/keys">
      <input type="hidden" name="once" value={once} />
      <label>
        Name of a new key
        <input name="name" required maxlength={100} placeholder="Laptop" />
      </label>
      <button type="submit">Create New Key</button>
    </form>
    <h2>Password</h2>
    <form method="post" action="/account/password">
      <label>
        Current password
        <input name="current" type="password" autocomplete="current-password" required maxlength={200} />
      </label>
      <label>
        New password
        <input
          name="password"
          type="password"
          autocomplete="new-password"
          required
          minlength={12}
          maxlength={200}
        />
        <span class="soft">At least 12 characters. All other browsers will be signed out.</span>
      </label>
      <button type="submit">Change password</button>
    </form>
  </Layout>
);

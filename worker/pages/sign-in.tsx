import { Layout } from "./layout.tsx";

export const SignInPage = ({
  email,
  refused,
  device,
}: {
  email: string;
  refused: boolean;
  device: string | null;
}) => (
  <Layout title="Sign in">
    <h1>Sign in</h1>
    {refused && (
      <p class="note warn" role="alert">
        The e-mail address or the password is not right.
      </p>
    )}
    <form method="post" action="/sign-in">
      {device !== null && <input type="hidden" name="device" value={device} />}
      <label>
        E-mail
        <input name="email" type="email" autocomplete="username" required value={email} />
      </label>
      <label>
        Password
        <input name="password" type="password" autocomplete="current-password" required />
      </label>
      <button type="submit">Sign in</button>
    </form>
  </Layout>
);

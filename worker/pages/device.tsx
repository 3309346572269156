import type { DeviceRequest } from "../objects/rpc.ts";
import { Layout } from "./kit/layout.tsx";

export const DevicePage = ({ userCode, request }: { userCode: string; request: DeviceRequest }) => (
  <Layout title="Authorize a device">
    <h1>Authorize this device?</h1>
    <p>Continue only if you started this yourself and your device shows this code:</p>
    <p class="code">{userCode}</p>
    <dl>
      <dt>Client</dt>
      <dd>{request.clientName}</dd>
      <dt>Address</dt>
      <dd>{request.address}</dd>
      <dt>Requested at</dt>
      <dd>{request.startedAt.slice(0, 19).replace("T", " ")} UTC</dd>
    </dl>
    <p class="note">
      The device gets a permanent API key with full access to your account. You can revoke it at any time.
    </p>
    <form method="post" action="/device">
      <input type="hidden" name="code" value={userCode} />
      <button type="submit" name="decision" value="approve">
        Authorize
      </button>
      <button class="quiet" type="submit" name="decision" value="deny">
        Deny
      </button>
    </form>
  </Layout>
);

export const DeviceCodePage = ({ wrong }: { wrong: boolean }) => (
  <Layout title="Authorize a device">
    <h1>Authorize a device</h1>
    {wrong && (
      <p class="note warn" role="alert">
        No device is waiting with this code. Codes expire after ten minutes: start again on the device.
      </p>
    )}
    <form method="get" action="/device">
      <label>
        Code
        <input name="code" autocomplete="off" placeholder="XXXX-XXXX" required />
      </label>
      <button type="submit">Continue</button>
    </form>
  </Layout>
);

export const DeviceDecidedPage = ({ approved }: { approved: boolean }) => (
  <Layout title="Authorize a device">
    <h1>{approved ? "The device is authorized" : "The request was denied"}</h1>
    <p>{approved ? "You can close this page and return to your device." : "The device gets no access."}</p>
  </Layout>
);

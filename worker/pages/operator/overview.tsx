import type { Child } from "hono/jsx";
import type { Overview } from "../../../protocol/api/system.ts";
import { call } from "../../api/call.ts";
import { Card, Live, Time } from "../kit/parts.tsx";
import type { Screen } from "../kit/screen.ts";
import { counted, type Tone } from "../kit/words.ts";
import { money } from "../money.ts";
import { operatorFrame } from "./frame.tsx";

const Tile = ({
  title,
  href,
  figure,
  tone = "soft",
  children,
}: {
  title: string;
  href: string;
  figure: Child;
  tone?: Tone;
  children?: Child;
}) => (
  <Card
    title={title}
    end={
      <a href={href} aria-label={`Open: ${title}`}>
        Open
      </a>
    }
  >
    <div class="body">
      <p class={`figure ${tone === "soft" ? "" : tone}`}>{figure}</p>
      <div class="soft small">{children}</div>
    </div>
  </Card>
);

const sums = (list: Overview["money"]["received"]): string =>
  list.length === 0
    ? "nothing"
    : list.map(({ amountCents, currency }) => money(amountCents, currency)).join(", ");

const total = (counts: Partial<Record<string, number>>): number =>
  Object.values(counts).reduce<number>((sum, count) => sum + (count ?? 0), 0);

export const operatorOverview: Screen = {
  path: "/operator",
  async show({ ctx }) {
    const now = await call(ctx, "getOverview", {});
    const { hosts, queue, deploymentsInAnHour: deployed, backups, mail, accounts } = now;
    return operatorFrame(
      "/operator",
      <Live id="overview">
        <div class="tiles">
          <Tile
            title="Hosts"
            href="/operator/hosts"
            tone={hosts.down.length > 0 ? "bad" : hosts.up === 0 ? "warn" : "good"}
            figure={`${hosts.up} connected`}
          >
            {hosts.down.length > 0 && `Not connected: ${hosts.down.map(({ name }) => name).join(", ")}. `}
            {hosts.draining > 0 && `${hosts.draining} draining.`}
            {hosts.up + hosts.down.length === 0 && "Nothing can be deployed yet: add a host."}
          </Tile>
          <Tile
            title="Queue"
            href="/operator/queue"
            tone={queue.stuck > 0 ? "bad" : "soft"}
            figure={`${queue.waiting} waiting`}
          >
            {queue.running} running{queue.stuck > 0 && `, ${queue.stuck} stuck`}
            {queue.oldestWaitingAt !== null && (
              <>
                , the oldest queued <Time at={queue.oldestWaitingAt} />
              </>
            )}
          </Tile>
          <Tile
            title="Deployments"
            href="/operator/sites"
            tone={deployed.failed > deployed.live ? "bad" : "soft"}
            figure={`${deployed.live} live`}
          >
            {deployed.failed} failed, both in the last hour
          </Tile>
          <Tile
            title="Sites"
            href="/operator/sites"
            tone={(now.sites.FAILED ?? 0) > 0 ? "warn" : "soft"}
            figure={total(now.sites)}
          >
            {now.sites.RUNNING ?? 0} in service, {now.sites.FAILED ?? 0} failed, {now.sites.SUSPENDED ?? 0}{" "}
            suspended
          </Tile>
          <Tile
            title="Databases"
            href="/operator/sites?kind=databases"
            tone={(now.databases.FAILED ?? 0) > 0 ? "bad" : "soft"}
            figure={total(now.databases)}
          >
            {now.databases.RUNNING ?? 0} in service, {now.databases.FAILED ?? 0} failed
          </Tile>
          <Tile title="Accounts" href="/operator/accounts" figure={accounts.total}>
            {accounts.newInAWeek} new in a week, {accounts.suspended} suspended
          </Tile>
          <Tile title="Received this month" href="/operator/money" figure={sums(now.money.received)}>
            Refunded: {sums(now.money.refunded)}
          </Tile>
          <Tile
            title="Unpaid"
            href="/operator/money?status=unpaid"
            figure={sums(now.money.unpaid)}
            tone={now.money.openFlags > 0 ? "bad" : "soft"}
          >
            {counted(now.money.openFlags, "payment event needs", "payment events need")} attention
          </Tile>
          <Tile
            title="Backups"
            href="/operator/sites?kind=databases"
            tone={backups.failing > 0 ? "bad" : "good"}
            figure={`${backups.failing} failing`}
          >
            {counted(backups.unprotected, "running database", "running databases")} without a verified backup
          </Tile>
          <Tile
            title="Mail"
            href="/operator/system"
            tone={!mail.configured || mail.waiting > 0 ? "warn" : "good"}
            figure={mail.configured ? `${mail.waiting} waiting` : "Not set up"}
          >
            {mail.lastSentAt !== null && <>The last was sent {<Time at={mail.lastSentAt} />}.</>}
          </Tile>
        </div>
      </Live>,
    );
  },
};

import { HostCreate, HostPatch, type Host, type HostUsage } from "../../../protocol/api/hosts.ts";
import { parsed } from "../../domain/parsed.ts";
import { call } from "../../api/call.ts";
import { Act, Button, Check, Field, Form, Submit, typedInto } from "../kit/form.tsx";
import { cursorIn } from "../kit/paging.ts";
import { Callout, Card, Empty, Live, Meter, Pager, Status, Time } from "../kit/parts.tsx";
import type { Asked, Screen } from "../kit/screen.ts";
import { counted, type Word } from "../kit/words.ts";
import { operatorFrame } from "./frame.tsx";

const gigabytes = (mb: number): string => (mb / 1024).toFixed(1);

const wordOf = ({ status, connected, connectedAt }: Host): Word =>
  connectedAt === null
    ? { tone: "busy", label: "Waiting for its agent" }
    : !connected
      ? { tone: "bad", label: "Not connected" }
      : status === "DRAINING"
        ? { tone: "warn", label: "Draining" }
        : { tone: "good", label: "In service" };

/** What has left a draining host already shows in the numbers; this says what is still to go, and what will not. */
const Draining = ({ host }: { host: Host }) => {
  const moving = host.siteCount - host.volumeSiteCount - host.linkedSiteCount;
  const staying = host.volumeSiteCount + host.databaseCount;
  return (
    <Callout
      tone={moving > 0 ? "busy" : staying > 0 ? "warn" : "good"}
      title={
        moving > 0
          ? `${moving} ${moving === 1 ? "site has" : "sites have"} yet to move`
          : staying > 0
            ? "All that can move has moved"
            : "It is empty: it can be removed"
      }
    >
      {host.notice !== null && <p>{host.notice}</p>}
    </Callout>
  );
};

/** Of the machine itself; while its agent does not answer, what it last said. */
const Used = ({ host, usage }: { host: Host; usage: HostUsage | null }) => {
  if (usage === null)
    return host.diskFreeMb === null ? null : (
      <p class="soft">
        {host.connected ? "Its agent did not report the machine's usage in time" : "Not measured now"}; at the
        last report, {gigabytes(host.diskFreeMb)} GB of disk were free.
      </p>
    );
  const { cpuBusy, cpuCount, memory, disk } = usage;
  return (
    <>
      <Meter
        label="Processors"
        used={cpuBusy ?? 0}
        limit={cpuBusy === null ? null : 1}
        said={
          cpuBusy === null
            ? "being measured"
            : `${(cpuBusy * cpuCount).toFixed(1)} of ${cpuCount} ${cpuCount === 1 ? "core" : "cores"}`
        }
      />
      <Meter
        label="Memory in use"
        used={memory.usedMb}
        limit={memory.totalMb}
        said={`${gigabytes(memory.usedMb)} of ${gigabytes(memory.totalMb)} GB`}
      />
      {disk && (
        <Meter
          label="Disk"
          used={disk.usedMb}
          limit={disk.totalMb}
          said={`${gigabytes(disk.usedMb)} of ${gigabytes(disk.totalMb)} GB`}
        />
      )}
    </>
  );
};

const OneHost = ({ host, usage }: { host: Host; usage: HostUsage | null }) => (
  <Card
    title={
      <span class="row">
        {host.name} <Status {...wordOf(host)} />
      </span>
    }
    id={host.id}
  >
    <div class="body">
      {host.connectedAt === null && (
        <Callout tone="busy" title="Waiting for its agent">
          <p>
            Run the install command as root on the machine; this page updates automatically once it is there.
            The command was shown once: if it is lost, remove the host and add it again.
          </p>
        </Callout>
      )}
      {host.connected &&
        host.problems.map((problem) => (
          <Callout tone="bad">
            <p>{problem}</p>
          </Callout>
        ))}
      <p class="soft">
        {host.cpuCount === null
          ? "Nothing is known about the machine yet"
          : `${counted(host.cpuCount, "core", "cores")}, agent ${host.agentVersion ?? "unknown"}`}
        {host.region !== null && `, region ${host.region}`}
        {host.offlineSince !== null && (
          <>
            , disconnected <Time at={host.offlineSince} />
          </>
        )}
      </p>
      <Used host={host} usage={usage} />
      {host.memoryMb !== null && host.freeMemoryMb !== null && (
        <Meter
          label="Memory promised"
          used={host.memoryMb - host.freeMemoryMb}
          limit={host.memoryMb}
          said={`${gigabytes(host.memoryMb - host.freeMemoryMb)} of ${gigabytes(host.memoryMb)} GB`}
        />
      )}
      <dl>
        <dt>Sites</dt>
        <dd>
          {host.siteCount === 0 ? "none" : <a href={`/operator/sites?host=${host.id}`}>{host.siteCount}</a>}
          {host.volumeSiteCount > 0 && `, ${host.volumeSiteCount} with volumes`}
        </dd>
        <dt>Databases</dt>
        <dd>
          {host.databaseCount === 0 ? (
            "none"
          ) : (
            <a href={`/operator/sites?kind=databases&host=${host.id}`}>{host.databaseCount}</a>
          )}
        </dd>
        <dt>Addresses</dt>
        <dd>{[host.ipv4, host.ipv6].filter(Boolean).join(", ") || "not known"}</dd>
      </dl>
      {host.status === "DRAINING" && <Draining host={host} />}
      <div class="buttons form-end">
        {host.status === "ACTIVE" ? (
          <Act id="drain" of={host.id} label="Drain" about={host.name} values={{ id: host.id }} />
        ) : (
          <Act
            id="activate"
            of={host.id}
            label="Accept sites again"
            about={host.name}
            values={{ id: host.id }}
          />
        )}
      </div>
      {host.memoryMb !== null && (
        <details id={`memory-${host.id}`} open={typedInto(`memory:${host.id}`) !== undefined}>
          <summary>Change how much of its memory is used</summary>
          <Form id="memory" of={host.id}>
            <input type="hidden" name="id" value={host.id} />
            <Field
              name="memoryMb"
              type="number"
              label="Memory for sites and databases, in MB"
              hint="Empty: all that its agent reports now."
              value={String(host.memoryMb)}
              min={1}
            />
            <Submit label="Save" of={host.name} />
          </Form>
        </details>
      )}
      <details id={`removal-${host.id}`} open={typedInto(`remove:${host.id}`) !== undefined}>
        <summary class="bad">Remove this host</summary>
        <p>
          {host.connectedAt === null
            ? "Its agent has never connected, so it is removed immediately."
            : "Drain it first; once it is empty, it is removed immediately. The sites of a lost host are deployed on other hosts; the data in its volumes is lost."}
        </p>
        <Form id="remove" of={host.id}>
          <input type="hidden" name="id" value={host.id} />
          <Check name="force" value="1" label="Even with sites on it; it must not be connected" />
          <Check
            name="connected"
            value="1"
            label="Even with sites on it, and connected, such as with a stolen token: its connection is ended, and its token refused"
          />
          <Check name="loseVolumes" value="1" label="Even with volumes on it: their data is lost" />
          <Button label="Remove" of={host.name} kind="danger" />
        </Form>
      </details>
    </div>
  </Card>
);

/** The page does not wait longer for a host that is slow. */
const answerWithinMs = 1000;

const usageOf = ({ ctx }: Asked, { id, connected }: Host): Promise<HostUsage | null> =>
  connected
    ? Promise.race([
        call(ctx, "getHostUsage", { id }).catch(() => null),
        scheduler.wait(answerWithinMs).then(() => null),
      ])
    : Promise.resolve(null);

export const operatorHosts: Screen = {
  path: "/operator/hosts",
  async show(asked) {
    const { data, nextCursor } = await call(asked.ctx, "listHosts", {
      limit: 100,
      ...cursorIn(asked.query, "host"),
    });
    const usages = await Promise.all(data.map((host) => usageOf(asked, host)));
    return operatorFrame(
      "/operator/hosts",
      <div class="split">
        <div class="stack">
          {data.length === 0 ? (
            <Card>
              <Empty
                title="No hosts yet"
                text="Sites run on hosts: machines with Docker that run our agent. Add the first one here."
              />
            </Card>
          ) : (
            <Live id="hosts" isPolled>
              {data.map((host, index) => (
                <OneHost host={host} usage={usages[index] ?? null} />
              ))}
            </Live>
          )}
          <Pager path="/operator/hosts" next={nextCursor} label="Older hosts" />
        </div>
        <Card title="Add a host">
          <div class="body">
            <Form id="create">
              <Field
                name="name"
                label="Name"
                hint="Lower-case letters, digits and hyphens."
                required
                maxlength={63}
              />
              <Field name="region" label="Region" hint="Optional: sites can request it." maxlength={40} />
              <Field
                name="token"
                label="Token"
                hint="Only for a machine that was a host before: BERTH_HOST_TOKEN in its /etc/berth/agent.env. Its agent recognizes by it the sites and databases that it runs."
                type="password"
              />
              <Submit label="Add host" kind="primary" />
            </Form>
          </div>
        </Card>
      </div>,
    );
  },
  forms: {
    async create({ ctx }, fields) {
      const { installCommand } = await call(ctx, "createHost", fields.read(HostCreate));
      return {
        to: "/operator/hosts",
        said: "The host is added. Run this command as root on the machine; it is shown only once. The host appears here as soon as its agent connects.",
        ...(installCommand !== undefined && { secret: installCommand }),
      };
    },
    async drain({ ctx }, fields) {
      await call(ctx, "patchHost", { id: fields.text("id"), ...parsed(HostPatch, { action: "drain" }) });
      return { to: "/operator/hosts", said: "The host is draining: its sites move to other hosts." };
    },
    async activate({ ctx }, fields) {
      await call(ctx, "patchHost", { id: fields.text("id"), ...parsed(HostPatch, { action: "activate" }) });
      return { to: "/operator/hosts", said: "The host accepts sites again." };
    },
    async memory({ ctx }, fields) {
      const typed = fields.text("memoryMb");
      const memoryMb = typed === "" ? null : Number(typed);
      await call(ctx, "patchHost", { id: fields.text("id"), ...parsed(HostPatch, { memoryMb }) });
      return { to: "/operator/hosts", said: "The host's memory is changed." };
    },
    async remove({ ctx }, fields) {
      const asked = {
        ...(fields.text("force") === "1" && { force: "1" as const }),
        ...(fields.text("loseVolumes") === "1" && { loseVolumes: "1" as const }),
        ...(fields.text("connected") === "1" && { connected: "1" as const }),
      };
      await call(ctx, "deleteHost", { id: fields.text("id"), ...asked });
      return { to: "/operator/hosts", said: "The host is removed." };
    },
  },
};

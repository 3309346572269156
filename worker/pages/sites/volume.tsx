import type { Backup } from "../../../protocol/api/backups.ts";
import { VolumePatch, type SiteVolume } from "../../../protocol/api/site-volumes.ts";
import type { Site } from "../../../protocol/api/sites.ts";
import { call } from "../../api/call.ts";
import { AppError, conflict } from "../../domain/app-error.ts";
import { parsed } from "../../domain/parsed.ts";
import {
  backupForms,
  BackupSchedule,
  BackupTable,
  ReplaceFields,
  RestoreMenu,
  ScheduleForm,
} from "../kit/backups.tsx";
import { Act, Field, Form, Submit } from "../kit/form.tsx";
import { cursorIn } from "../kit/paging.ts";
import { Callout, Card, Day, Empty, LocalTime, Pager } from "../kit/parts.tsx";
import type { Asked, Screen } from "../kit/screen.ts";
import { siteFrame } from "./frame.tsx";

export const volumePath = (siteId: string, name: string): string => `/sites/${siteId}/data/${name}`;
const here = ({ param }: Asked): string => volumePath(param("id"), param("name"));

const Restore = ({ backup, site, volume }: { backup: Backup; site: Site; volume: SiteVolume }) => (
  <RestoreMenu backup={backup} forms={["restore", "copy"]}>
    <Form id="restore" of={backup.id}>
      <p>
        Everything in {volume.name} is replaced with its contents from <LocalTime at={backup.createdAt} />,
        after a backup of its current contents. If that fails, it is replaced anyway.{" "}
        {volume.mounted && site.status !== "STOPPED" && "Stop the site first: it uses the volume."}
      </p>
      <input type="hidden" name="backupId" value={backup.id} />
      <ReplaceFields name={volume.name} label={`Type ${volume.name} to confirm`} />
    </Form>
    <Form id="copy" of={backup.id}>
      <p>Or restore it into a new volume, beside this one, while the site runs.</p>
      <input type="hidden" name="backupId" value={backup.id} />
      <Field
        name="into"
        label="Name of the new volume"
        required
        maxlength={63}
        placeholder={`${volume.name}-restored`}
      />
      <Submit label="Restore into a new volume" />
    </Form>
  </RestoreMenu>
);

const Notices = ({ volume: { restoring, restoreError, backups } }: { volume: SiteVolume }) => (
  <>
    {restoring && (
      <Callout tone="busy">
        <p>A backup is being restored into this volume.</p>
      </Callout>
    )}
    {restoreError !== null && (
      <Callout tone="bad">
        <p>{restoreError}</p>
      </Callout>
    )}
    {backups.failing !== null && (
      <Callout tone="warn" title="Backups are failing">
        <p>
          Since <Day at={backups.failing.since} />: {backups.failing.reason}
        </p>
      </Callout>
    )}
  </>
);

/** The backups of a site's volume. */
export const siteVolume: Screen = {
  path: "/sites/:id/data/:name",
  async show({ ctx, param, query }) {
    const [site, volumes] = await Promise.all([
      call(ctx, "getSite", { id: param("id") }),
      call(ctx, "listVolumes", { id: param("id") }),
    ]);
    const volume = volumes.data.find(({ name }) => name === param("name"));
    if (!volume) throw new AppError("not_found");
    const { data, nextCursor } = await call(ctx, "listVolumeBackups", {
      id: site.id,
      name: volume.name,
      limit: 50,
      ...cursorIn(query, "backup"),
    });
    return siteFrame(
      site,
      "Data",
      <div class="stack">
        <p class="small">
          <a href={`/sites/${site.id}/data`}>All volumes</a>
        </p>
        <div class="split">
          <div class="stack">
            <Card
              title={`Backups of ${volume.name}`}
              end={site.hostId === null ? undefined : <Act id="create" label="Back up now" />}
              id="backups"
              live
            >
              <Notices volume={volume} />
              {data.length === 0 ? (
                <Empty
                  title="No backups yet"
                  text="A backup contains all files in the volume. The site is paused while it is read, for five seconds at most; it is then restored into a temporary folder and compared, so you know it works."
                />
              ) : (
                <BackupTable
                  backups={data}
                  restore={(backup) => <Restore backup={backup} site={site} volume={volume} />}
                />
              )}
            </Card>
            <Pager path={volumePath(site.id, volume.name)} next={nextCursor} label="Older backups" />
          </div>
          <Card title="Schedule">
            <BackupSchedule backups={volume.backups} />
          </Card>
        </div>
      </div>,
      { about: [`${site.id}/${volume.name}`] },
    );
  },
  forms: {
    async create(asked) {
      await call(asked.ctx, "createVolumeBackup", { id: asked.param("id"), name: asked.param("name") });
      return { to: here(asked), said: "A backup is being made; it is then test-restored." };
    },
    async schedule(asked, fields) {
      const { backups } = parsed(VolumePatch, { backups: parsed(ScheduleForm, fields.record()) });
      await call(asked.ctx, "changeVolume", { id: asked.param("id"), name: asked.param("name"), backups });
      return { to: here(asked), said: "The schedule is saved." };
    },
    async restore(asked, fields) {
      const name = asked.param("name");
      if (fields.text("confirm") !== name)
        throw conflict(`Nothing was restored: type ${name}, the volume whose data is replaced.`);
      await call(asked.ctx, "restoreVolume", {
        id: asked.param("id"),
        name,
        backupId: fields.text("backupId"),
      });
      return { to: here(asked), said: "The backup is being restored." };
    },
    async copy(asked, fields) {
      const id = asked.param("id");
      const name = fields.text("into").trim();
      const { data } = await call(asked.ctx, "listVolumes", { id });
      if (data.some((one) => one.name === name))
        throw conflict(`Nothing was restored: the site already has a volume ${name}. Choose another name.`);
      await call(asked.ctx, "restoreVolume", { id, name, backupId: fields.text("backupId") });
      return {
        to: volumePath(id, name),
        said: `The backup is being restored into ${name}. Set a folder for it on the Data page, and deploy, to use it.`,
      };
    },
    ...backupForms(here),
  },
};

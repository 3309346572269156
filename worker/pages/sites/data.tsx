import type { Browsed } from "../../../protocol/api/files.ts";
import { FilesQuery } from "../../../protocol/api/files.ts";
import { SiteSettings, type Site } from "../../../protocol/api/sites.ts";
import { maxVolumes } from "../../../protocol/api/volumes.ts";
import { type SiteVolume } from "../../../protocol/api/site-volumes.ts";
import type { DiskUse } from "../../../protocol/api/disk.ts";
import { call } from "../../api/call.ts";
import { invalid } from "../../domain/app-error.ts";
import { parsed } from "../../domain/parsed.ts";
import { listOwnPacks } from "../../services/packs/list.ts";
import { Act, Field, Form, Submit } from "../kit/form.tsx";
import { ifBigger } from "../kit/plans.tsx";
import { Callout, Card, Empty, Head, Meter, Time } from "../kit/parts.tsx";
import type { Asked, Screen } from "../kit/screen.ts";
import { size } from "../kit/size.ts";
import { siteFrame, whenUsed } from "./frame.tsx";
import { orWhy } from "./or-why.ts";
import { volumePath } from "./volume.tsx";

const here = ({ param }: Asked): string => `/sites/${param("id")}/data`;
const megabytes = (mb: number | null): string =>
  mb === null ? "–" : mb < 10 ? `${mb.toFixed(1)} MB` : `${Math.round(mb).toLocaleString("en-US")} MB`;

const VolumeRow = ({ volume, site, path }: { volume: SiteVolume; site: Site; path: string }) => {
  const isSet = site.volumes.some(({ name }) => name === volume.name);
  return (
    <tr>
      <td>
        <a href={`${path}?${new URLSearchParams({ volume: volume.name, path: "/" }).toString()}`}>
          {volume.name}
        </a>
        <div class="small">
          <a href={volumePath(site.id, volume.name)}>
            Backups<span class="hidden-text"> of {volume.name}</span>
          </a>
          {volume.backups.failing !== null && <span class="warn"> are failing</span>}
          {volume.restoring && <span class="soft"> · being restored</span>}
        </div>
      </td>
      <td>
        {volume.mountPath === null ? <span class="soft">detached</span> : <code>{volume.mountPath}</code>}
        {volume.mountPath !== null && !volume.mounted && (
          <div class="soft small">from the next deployment on</div>
        )}
      </td>
      <td class="number wide-only">{megabytes(volume.sizeMb)}</td>
      <td class="end">
        {isSet ? (
          <Act
            id="detach"
            of={volume.name}
            label="Detach"
            about={volume.name}
            values={{ name: volume.name }}
          />
        ) : volume.mounted ? (
          <span class="soft small">detached at the next deployment</span>
        ) : (
          <details class="more">
            <summary class="bad">Delete …</summary>
            <p class="small">
              All {megabytes(volume.sizeMb)} in {volume.name} are lost for good. Its backups, if there are
              any, are kept for 30 days.
            </p>
            <Act
              id="remove"
              of={volume.name}
              label={`Delete ${volume.name}`}
              kind="danger primary"
              values={{ name: volume.name }}
            />
          </details>
        )}
      </td>
    </tr>
  );
};

const Volumes = ({ site, volumes, path }: { site: Site; volumes: SiteVolume[]; path: string }) => (
  <Card title="Volumes">
    {volumes.length === 0 ? (
      <Empty
        title="No volume"
        text="What the app writes elsewhere is lost at each deployment. A volume is a folder that is kept."
      />
    ) : (
      <table>
        <Head
          columns={[
            "Volume",
            "Folder in the app",
            ["Size", "number wide-only"],
            [<span class="hidden-text">Actions</span>, "end"],
          ]}
        />
        <tbody>
          {volumes.map((volume) => (
            <VolumeRow volume={volume} site={site} path={path} />
          ))}
        </tbody>
      </table>
    )}
    {site.volumes.length < maxVolumes && (
      <div class="body">
        <Form id="add">
          <div class="columns">
            <Field name="name" label="Name" placeholder="uploads" required maxlength={63} />
            <Field
              name="mountPath"
              label="Folder in the app"
              placeholder="/data"
              hint="An empty folder, not the one the app itself is in."
              required
              maxlength={200}
            />
          </div>
          <Submit label="Add volume" />
        </Form>
      </div>
    )}
  </Card>
);

const Disk = ({ disk, bigger }: { disk: DiskUse; bigger: string | undefined }) => (
  <Card title="Disk">
    <div class="body">
      {disk.notMeasured !== null && <p class="soft">{disk.notMeasured}</p>}
      {disk.countedMb !== null && (
        <Meter
          label="Of the plan"
          used={disk.countedMb}
          limit={disk.limitMb}
          bigger={bigger}
          said={`${megabytes(disk.countedMb)} of ${disk.limitMb / 1024} GB`}
        />
      )}
      <dl class="sum">
        <dt>Written outside volumes</dt>
        <dd>{megabytes(disk.writtenMb)}</dd>
        <dt>Log</dt>
        <dd>{megabytes(disk.logMb)}</dd>
        <dt>Kept images ({disk.images.length})</dt>
        <dd>{megabytes(disk.images.reduce((sum, { sizeMb }) => sum + sizeMb, 0))}</dd>
      </dl>
    </div>
  </Card>
);

/** The folders above a path, from the root. */
const above = (path: string): string[] => {
  const parts = path.split("/").filter(Boolean);
  return ["/", ...parts.map((_, index) => `/${parts.slice(0, index + 1).join("/")}`)];
};
const nameOf = (path: string): string => path.split("/").at(-1) || "/";

const Files = ({
  path,
  volume,
  asked,
  browsed,
  why,
}: {
  path: string;
  volume: string | undefined;
  asked: string;
  browsed: Browsed | null;
  why: string | null;
}) => {
  const to = (file: string) =>
    `${path}?${new URLSearchParams({ ...(volume !== undefined && { volume }), path: file }).toString()}#files`;
  const at = browsed?.path ?? asked;
  return (
    <Card
      id="files"
      title={
        <nav aria-label="Folders" class="row">
          {above(at).map((folder) => (
            <a href={to(folder)}>{folder === "/" ? (volume ?? "Files") : nameOf(folder)}</a>
          ))}
        </nav>
      }
      end={
        volume === undefined ? (
          <span class="soft small">read only</span>
        ) : (
          <a href={`${path}#files`}>The app's files</a>
        )
      }
    >
      {why !== null && (
        <div class="body">
          <Callout tone="warn">
            <p>{why}</p>
          </Callout>
        </div>
      )}
      {browsed?.kind === "folder" && browsed.entries.length === 0 && (
        <p class="body soft">This folder is empty.</p>
      )}
      {browsed?.kind === "folder" && browsed.entries.length > 0 && (
        <table>
          <Head columns={["Name", ["Size", "number"], ["Changed", "end"]]} />
          <tbody>
            {browsed.entries.map((entry) => (
              <tr>
                <td>
                  {entry.kind === "other" ? (
                    entry.name
                  ) : (
                    <a href={to(`${at === "/" ? "" : at}/${entry.name}`)}>
                      {entry.name}
                      {entry.kind === "folder" && "/"}
                    </a>
                  )}{" "}
                  {entry.kind === "link" && <span class="chip">link</span>}
                </td>
                <td class="number soft">{entry.sizeBytes !== null && size(entry.sizeBytes)}</td>
                <td class="end soft">
                  <Time at={entry.modifiedAt} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {browsed?.kind === "file" && (
        <div class="body">
          {browsed.text === null ? (
            <p class="soft">This file is not text ({size(browsed.sizeBytes)}).</p>
          ) : (
            <pre tabindex={0}>{browsed.text}</pre>
          )}
        </div>
      )}
      {browsed?.truncated && (
        <p class="body soft">
          {browsed.kind === "file"
            ? "Only the first 128 KiB are shown."
            : "Only the first 1,000 entries are shown."}
        </p>
      )}
    </Card>
  );
};

async function setVolumes(asked: Asked, volumes: Site["volumes"]): Promise<void> {
  const settings = parsed(SiteSettings, { volumes });
  await call(asked.ctx, "patchSite", { id: asked.param("id"), settings });
}

export const siteData: Screen = {
  path: "/sites/:id/data",
  async show(asked) {
    const { ctx, param, query } = asked;
    const site = await call(ctx, "getSite", { id: param("id") });
    const [wantedPath, volume] = [query("path") || "/", query("volume") || undefined];
    const wanted = FilesQuery.safeParse({ path: wantedPath, ...(volume !== undefined && { volume }) });
    const [packs, volumes, disk, files] = await Promise.all([
      listOwnPacks(ctx),
      call(ctx, "listVolumes", { id: site.id }),
      call(ctx, "getSiteDisk", { id: site.id }),
      wanted.success
        ? orWhy(call(ctx, "browseFiles", { id: site.id, ...wanted.data }))
        : { found: null, why: "There is no such folder or file." },
    ]);
    const path = here(asked);
    return siteFrame(
      site,
      "Data",
      <div class="split">
        <div class="stack">
          <Volumes site={site} volumes={volumes.data} path={path} />
          <Files path={path} volume={volume} asked={wantedPath} browsed={files.found} why={files.why} />
        </div>
        <Disk
          disk={disk}
          bigger={ifBigger(
            packs,
            packs.find(({ id }) => id === site.packId),
            ({ diskGb }) => diskGb,
            `/sites/${site.id}/settings#plan`,
          )}
        />
      </div>,
    );
  },
  forms: {
    async add(asked, fields) {
      const { volumes } = await call(asked.ctx, "getSite", { id: asked.param("id") });
      const volume = { name: fields.text("name").trim(), mountPath: fields.text("mountPath").trim() };
      if (volumes.some(({ name }) => name === volume.name))
        throw invalid("name", "The site has a volume of this name");
      if (volumes.some(({ mountPath }) => mountPath === volume.mountPath))
        throw invalid("mountPath", "Another volume uses this folder");
      await setVolumes(asked, [...volumes, volume]);
      return { to: here(asked), said: `The volume ${volume.name} is added. ${await whenUsed(asked)}` };
    },
    async detach(asked, fields) {
      const { volumes } = await call(asked.ctx, "getSite", { id: asked.param("id") });
      const name = fields.text("name");
      await setVolumes(
        asked,
        volumes.filter((volume) => volume.name !== name),
      );
      return {
        to: here(asked),
        said: `${name} will be detached at the next deployment. Its data is kept until you delete it.`,
      };
    },
    async remove(asked, fields) {
      const { name } = await call(asked.ctx, "removeVolume", {
        id: asked.param("id"),
        name: fields.text("name"),
      });
      return { to: here(asked), said: `The volume ${name} is deleted with all its data.` };
    },
  },
};

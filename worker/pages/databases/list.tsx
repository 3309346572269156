import type { Database } from "../../../protocol/api/databases.ts";
import { call } from "../../api/call.ts";
import { Card, Day, Empty, Heading, Pager, Status } from "../kit/parts.tsx";
import type { Screen } from "../kit/screen.ts";
import { databaseWords } from "../kit/words.ts";
import { databasePath, engineNames, engineVersion } from "./frame.tsx";

const Row = ({ database }: { database: Database }) => (
  <tr>
    <td>
      <a href={databasePath(database.id)}>
        <strong>{database.name}</strong>
      </a>
      <br />
      <span class="soft">
        {database.version === null
          ? engineVersion(database.type)
          : `${engineNames[database.type]} ${database.version}`}
      </span>
    </td>
    <td>
      <Status {...databaseWords[database.status]} />
      {database.backups.failing !== null && <div class="warn small">backups are failing</div>}
      {database.notice !== null && <div class="warn small">needs you</div>}
    </td>
    <td class="wide-only soft">
      {database.links.length === 0
        ? "no site"
        : database.links.length === 1
          ? "1 site"
          : `${database.links.length} sites`}
    </td>
    <td class="end soft">
      {database.paidUntil === null ? "not paid yet" : <>paid until {<Day at={database.paidUntil} />}</>}
    </td>
  </tr>
);

export const databaseList: Screen = {
  path: "/databases",
  async show({ ctx, query }) {
    const cursor = query("cursor");
    const { data, nextCursor } = await call(ctx, "listDatabases", {
      limit: 100,
      ...(cursor !== undefined && { cursor }),
    });
    return {
      title: "Databases",
      section: "databases",
      about: ["account"],
      body: (
        <>
          <Heading title="Databases">
            <a class="button primary" href="/databases/new">
              New database
            </a>
          </Heading>
          <Card id="databases" live>
            {data.length === 0 ? (
              <Empty
                title="No databases yet"
                text="PostgreSQL, MariaDB or Redis beside your sites, on a private network. It is backed up every day, and every backup is tried by restoring it."
              >
                <a class="button" href="/databases/new">
                  New database
                </a>
              </Empty>
            ) : (
              <table>
                <thead>
                  <tr>
                    <th scope="col">Database</th>
                    <th scope="col">State</th>
                    <th scope="col" class="wide-only">
                      Used by
                    </th>
                    <th scope="col" class="end">
                      Term
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {data.map((database) => (
                    <Row database={database} />
                  ))}
                </tbody>
              </table>
            )}
          </Card>
          <Pager path="/databases" next={nextCursor} label="Older databases" />
        </>
      ),
    };
  },
};

import type { Database } from "../../../protocol/api/databases.ts";
import { call } from "../../api/call.ts";
import { listed, ListPage } from "../kit/list-page.tsx";
import { Day, Status } from "../kit/parts.tsx";
import type { Screen } from "../kit/screen.ts";
import type { Keys } from "../kit/sort.tsx";
import { databaseWords } from "../kit/words.ts";
import { databasePath, engineVersion } from "./frame.tsx";

const Row = ({ database }: { database: Database }) => (
  <tr>
    <td class="any-break">
      <a href={databasePath(database.id)}>
        <strong>{database.name}</strong>
      </a>
      <br />
      <span class="soft">{engineVersion(database.type, database.version)}</span>
    </td>
    <td>
      <Status {...databaseWords[database.status]} />
      {database.backups.failing !== null && <div class="warn small">backups are failing</div>}
      {database.notice !== null && <div class="warn small">needs attention</div>}
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

const keys: Keys<Database> = {
  name: ({ name }) => name,
  state: ({ status }) => databaseWords[status].label,
  sites: ({ links }) => links.length,
  term: ({ paidUntil }) => paidUntil ?? "",
};

export const databaseList: Screen = {
  path: "/databases",
  async show({ ctx, query }) {
    const databases = await listed(query, "database", keys, (page) => call(ctx, "listDatabases", page));
    return {
      title: "Databases",
      section: "databases",
      about: ["account"],
      body: (
        <ListPage
          path="/databases"
          title="Databases"
          noun="database"
          about="PostgreSQL, MariaDB or Redis beside your sites, on a private network. It is backed up every day, and every backup is test-restored."
          columns={[
            { label: "Database", by: "name" },
            { label: "State", by: "state" },
            { label: "Used by", by: "sites", class: "wide-only" },
            { label: "Term", by: "term", class: "end" },
          ]}
          listed={databases}
          row={(database) => <Row database={database} />}
        />
      ),
    };
  },
};

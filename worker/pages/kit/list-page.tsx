import type { Child } from "hono/jsx";
import { Card, Empty, Heading, Pager } from "./parts.tsx";

/** The page that lists what the account has of one kind, a row each. New ones are made at `<path>/new`. */
export const ListPage = ({
  path,
  title,
  noun,
  about,
  columns,
  rows,
  next,
}: {
  path: string;
  title: string;
  /** Of one of them. */
  noun: string;
  /** What they are, where there is none yet. */
  about: string;
  columns: readonly { label: string; class?: "wide-only" | "end" }[];
  rows: readonly Child[];
  next: string | null;
}) => (
  <>
    <Heading title={title}>
      <a class="button primary" href={`${path}/new`}>
        New {noun}
      </a>
    </Heading>
    <Card id="list" live>
      {rows.length === 0 ? (
        <Empty title={`No ${noun}s yet`} text={about}>
          <a class="button" href={`${path}/new`}>
            New {noun}
          </a>
        </Empty>
      ) : (
        <table class="roomy">
          <thead>
            <tr>
              {columns.map(({ label, class: classes }) => (
                <th scope="col" class={classes ?? ""}>
                  {label}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>{rows}</tbody>
        </table>
      )}
    </Card>
    <Pager path={path} next={next} label={`Older ${noun}s`} />
  </>
);

import type { KindField, KindWithFields } from '@muster/protocol/http';
import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { kindFieldValues } from '../../../../client/src/kind-text.ts';
import { kindQuery } from '../../api/modules/kinds.ts';
import { Badge } from '../../parts/badge.tsx';
import { Callout } from '../../parts/callout.tsx';
import { Code } from '../../parts/copy.tsx';
import { Facts } from '../../parts/facts.tsx';
import { Panel } from '../../parts/panel.tsx';
import { visibleText } from '../../parts/text.tsx';
import { ItemPage, LoadedItem, ReportSkeleton } from '../item-page.tsx';
import { CodeText } from './code-text.tsx';
import { platformsText } from './platforms.ts';

export function KindPage() {
  const { kind: name = '' } = useParams({ strict: false });
  const query = useQuery(kindQuery(name));
  return (
    <LoadedItem of="kind" title={visibleText(name)} query={query} skeleton={<ReportSkeleton />}>
      {(kind) => (
        <ItemPage of="kind" title={visibleText(name)} subtitle={<CodeText text={`${kind.summary}.`} />}>
          <KindDetails kind={kind} />
        </ItemPage>
      )}
    </LoadedItem>
  );
}

function KindDetails({
  kind: { platforms, executable, fields, exclusive, example },
}: {
  readonly kind: KindWithFields;
}) {
  const identity = fields.filter((field) => field.identity).map(({ name }) => name);
  return (
    <div className="space-y-4">
      {!executable && (
        <Callout tone="info" title="Agents of this release do not apply this kind yet">
          Modules that use it are validated but cannot be applied.
        </Callout>
      )}
      <Panel>
        <Facts
          facts={[
            ['Systems', platformsText(platforms)],
            ['Identity', <Names key="identity" names={identity} />],
          ]}
        />
        {exclusive.map((group) => (
          <p key={group.join()} className="mt-3 text-sm">
            Only one of <Names names={group} />
          </p>
        ))}
      </Panel>
      <Panel title="Fields" flush>
        <div
          aria-hidden="true"
          className={`flex h-8 items-center border-b px-4 font-medium text-muted text-xs max-md:hidden ${fieldColumns}`}
        >
          <span>Name</span>
          <span>Value</span>
          <span>Description</span>
        </div>
        <ul className="divide-y" aria-label="Fields">
          {fields.map((field) => (
            <FieldEntry key={field.name} field={field} />
          ))}
        </ul>
      </Panel>
      <Panel title="Example">
        <Code text={example} />
      </Panel>
    </div>
  );
}

/** The columns of the fields. On narrow screens, a field is a block of lines. */
const fieldColumns = 'md:grid md:grid-cols-[14rem_16rem_minmax(0,1fr)] md:gap-x-6';

const Names = ({ names }: { readonly names: readonly string[] }) => (
  <code className="break-words font-mono text-xs">{names.join(', ')}</code>
);

/** Returns a field's description without its default, which the column of values includes. */
function withoutDefault({ description, default: value }: KindField): string {
  const end = `; default: ${value}`;
  return description.endsWith(end) ? description.slice(0, -end.length) : description;
}

function FieldEntry({ field }: { readonly field: KindField }) {
  const { name, required, identity, sensitive } = field;
  return (
    <li className={`grid gap-y-1 px-4 py-2.5 text-sm ${fieldColumns}`}>
      <span className="flex min-w-0 flex-wrap items-center gap-1.5 self-start">
        <code className="break-all font-medium font-mono text-xs">{name}</code>
        {required && <Badge>required</Badge>}
        {identity && <Badge>identity</Badge>}
      </span>
      <span className="min-w-0 break-words text-muted text-xs leading-5">
        {kindFieldValues(field)}
        {field.default !== null && <> · default {field.default}</>}
      </span>
      <span className="min-w-0 break-words">
        <CodeText text={withoutDefault(field)} />
        {sensitive && '; never shown'}
      </span>
    </li>
  );
}

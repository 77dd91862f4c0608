import type { FieldChange } from '@muster/protocol';
import { Text } from '../text.tsx';
import { columnsOf, type ResultKind } from './resource-groups.ts';

const cell = 'px-2.5 py-1 align-top';

/** A resource's changed fields with their old and new values. */
export function ChangesTable({
  changes,
  resultKind,
}: {
  readonly changes: readonly FieldChange[];
  readonly resultKind: ResultKind;
}) {
  const [from, to] = columnsOf(resultKind);
  return (
    <div className="overflow-x-auto rounded-md border" tabIndex={0} role="group" aria-label="Fields that differ">
      <table className="w-full border-collapse text-xs">
        <thead>
          <tr className="border-b bg-raised text-left text-muted">
            <th scope="col" className="w-40 px-2.5 py-1 font-medium">
              Field
            </th>
            <th scope="col" className="px-2.5 py-1 font-medium">
              {from}
            </th>
            <th scope="col" className="px-2.5 py-1 font-medium">
              {to}
            </th>
          </tr>
        </thead>
        <tbody>
          {changes.map((change) => (
            <tr key={change.field} className="border-b last:border-b-0">
              <th scope="row" className={`${cell} text-left font-medium`}>
                <Text text={change.field} />
              </th>
              <td className={cell}>
                <Value value={change.from} />
              </td>
              <td className={cell}>
                <Value value={change.to} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Value({ value }: { readonly value: string | null }) {
  if (value === null) return <span className="text-muted italic">none</span>;
  return (
    <span className="whitespace-pre-wrap font-mono">
      <Text text={value} maxLength={400} />
    </span>
  );
}

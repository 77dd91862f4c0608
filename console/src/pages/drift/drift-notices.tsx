import type { DriftRecord } from '@muster/protocol/http';
import { Link } from '@tanstack/react-router';
import { Callout } from '../../parts/callout.tsx';
import { Text } from '../../parts/text.tsx';
import { Time } from '../../parts/time.tsx';
import { OperatorName } from '../links.tsx';

/** Callouts above a drift record: a newer check exists, the check failed, or an operator accepted the drift. */
export function DriftNotices({
  record: { error, accepted },
  newer,
}: {
  readonly record: DriftRecord;
  readonly newer: DriftRecord | null;
}) {
  return (
    <>
      {newer !== null && (
        <Callout
          tone="info"
          title="A newer check of this agent exists"
          action={
            <Link
              to="/drift/$record"
              params={{ record: newer.drift_id }}
              className="rounded text-accent text-sm hover:underline"
            >
              Show the latest
            </Link>
          }
        />
      )}
      {error !== null && (
        <Callout tone="bad" title="The check failed">
          <Text text={error} maxLength={600} />
        </Callout>
      )}
      {accepted !== null && (
        <Callout
          tone="neutral"
          title={
            <span className="inline-flex flex-wrap gap-x-1">
              Accepted by <OperatorName id={accepted.by} /> <Time at={accepted.at} />
            </span>
          }
        >
          <Text text={accepted.reason} maxLength={600} />
        </Callout>
      )}
    </>
  );
}

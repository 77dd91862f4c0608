import type { Window } from '@muster/protocol/http';
import { DetailFact, DetailFacts } from '../../parts/facts.tsx';
import { Text } from '../../parts/text.tsx';
import { absoluteTime, shortDuration } from '../../parts/time.tsx';
import { OperatorName } from '../links.tsx';

/** The whole reason, times, and agents of a maintenance window. */
export const WindowDetails = ({
  window: { reason, starts_at, ends_at, selector, created_by },
}: {
  readonly window: Window;
}) => (
  <DetailFacts>
    <DetailFact name="Reason">
      <Text text={reason} maxLength={2_000} />
    </DetailFact>
    <DetailFact name="Starts">{absoluteTime(starts_at * 1000)}</DetailFact>
    <DetailFact name="Ends">
      {absoluteTime(ends_at * 1000)}
      <span className="text-muted">({shortDuration(ends_at - starts_at)})</span>
    </DetailFact>
    <DetailFact name="Agents">
      {selector === null ? (
        'all agents'
      ) : selector === '' ? (
        'no agent'
      ) : (
        <code className="font-mono text-xs">
          <Text text={selector} maxLength={1_000} />
        </code>
      )}
    </DetailFact>
    <DetailFact name="Created by">
      <OperatorName id={created_by} />
    </DetailFact>
  </DetailFacts>
);

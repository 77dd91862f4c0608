import { useMutation } from '@tanstack/react-query';
import { ShieldCheck } from 'lucide-react';
import type { ReactNode } from 'react';
import { verifyChain } from '../../api/audit.ts';
import { Id } from '../../parts/copy.tsx';
import { Dialog } from '../../parts/dialog/dialog.tsx';
import type { PageAction } from '../../parts/dialog/more-actions.tsx';
import { Problem, Skeleton } from '../../parts/states.tsx';
import { Text } from '../../parts/text.tsx';

/** Returns an action that verifies the hashes of the audit log, and the dialog with its result. */
export function useVerification(): { readonly action: PageAction; readonly dialog: ReactNode } {
  const verify = useMutation({ mutationFn: () => verifyChain() });
  const { data, error, isPending } = verify;
  return {
    action: {
      ...{ label: 'Verify', icon: <ShieldCheck aria-hidden="true" className="size-4" /> },
      ...{ busy: isPending, onSelect: () => verify.mutate() },
    },
    dialog: (
      <Dialog
        open={!verify.isIdle}
        onOpenChange={(open) => !open && verify.reset()}
        title={data === undefined ? 'Verifying the log' : data.ok ? 'The log is intact' : 'The log was tampered with'}
      >
        {isPending && <Skeleton className="h-20" />}
        <Problem error={error} />
        {data?.fault && (
          <div role="alert" className="mb-3 rounded-md bg-bad-soft px-3 py-2 text-bad text-sm">
            The chain is broken at position {data.fault.place}: <Text text={data.fault.message} />. The log was changed
            after it was written. Compare it with an earlier export or backup.
          </div>
        )}
        {data && (
          <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-6 gap-y-1.5 text-sm">
            <dt className="text-muted">Verified events</dt>
            <dd className="tabular">{data.verified.toLocaleString()}</dd>
            <dt className="text-muted">Starts after position</dt>
            <dd className="tabular">{data.anchor.place.toLocaleString()}</dd>
            <dt className="text-muted">Latest position</dt>
            <dd className="tabular">{data.head.place.toLocaleString()}</dd>
            <dt className="text-muted">Hash at latest position</dt>
            <dd>
              <Id id={data.head.hash} length={16} />
            </dd>
            <dt className="text-muted">Not yet chained</dt>
            <dd className="tabular">{data.unchained}</dd>
          </dl>
        )}
        {data?.ok && (
          <p className="mt-3 text-muted text-sm">
            Store the hash of the latest position elsewhere. A log that was rewritten completely passes this check, but
            has a different hash at that position.
          </p>
        )}
      </Dialog>
    ),
  };
}

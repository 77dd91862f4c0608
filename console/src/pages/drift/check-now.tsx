import type { DriftRecord } from '@muster/protocol/http';
import { useMutation } from '@tanstack/react-query';
import { RefreshCw } from 'lucide-react';
import { checkNow } from '../../api/drift.ts';
import { Button } from '../../parts/button.tsx';
import { countedText } from '../../parts/count.ts';
import { notify, notifyError } from '../../parts/dialog/toast.tsx';

/** Checks an agent for drift, and reports what the check found. */
export function CheckNow({ node_id, name }: { readonly node_id: string; readonly name: string }) {
  const check = useMutation({
    mutationFn: () => checkNow(node_id),
    onSuccess: (record) => notify(foundText(name, record)),
    onError: notifyError,
  });
  return (
    <Button
      small
      icon={<RefreshCw aria-hidden="true" className="size-3.5" />}
      busy={check.isPending}
      onClick={() => check.mutate()}
    >
      {check.isPending ? 'Checking…' : 'Check now'}
    </Button>
  );
}

/** Describes what a check found, for example `web-1 has drifted: 2 resources`. */
export function foundText(name: string, { status, accepted, resources, error }: DriftRecord): string {
  switch (status) {
    case 'in_sync':
      return `${name} has not drifted`;
    case 'drifted':
      return `${name} has ${accepted === null ? 'drifted' : 'accepted drift'}: ${countedText(resources.length, 'resource')}`;
    case 'failed':
      return `The check of ${name} failed${error === null ? '' : `: ${error}`}`;
    case 'cancelled':
      return `The check of ${name} was canceled`;
  }
}

import { Page } from '../../parts/page.tsx';

export function AssignmentPage() {
  return <Page title="Assignment">{null}</Page>;
}

export function NewAssignmentPage() {
  return <Page title="New assignment">{null}</Page>;
}

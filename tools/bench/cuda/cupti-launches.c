// A CUPTI tool that observes the launches of kernels and does nothing: the least that this can cost.
#include <cupti.h>

static void observed(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data) {}

int InitializeInjection(void) {
    CUpti_SubscriberHandle subscriber;
    cuptiSubscribe(&subscriber, (CUpti_CallbackFunc)observed, 0);
    cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
    return 1;
}

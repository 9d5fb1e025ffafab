/* What ggml's common header names of cuBLAS. Files that call more are not in the corpus. */
#pragma once
#include <cuda_runtime.h>

typedef struct cublasContext *cublasHandle_t;
typedef enum { CUBLAS_STATUS_SUCCESS } cublasStatus_t;
typedef enum { CUBLAS_TF32_TENSOR_OP_MATH } cublasMath_t;

cublasStatus_t cublasCreate(cublasHandle_t *);
cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t);
cublasStatus_t cublasSetStream(cublasHandle_t, cudaStream_t);
cublasStatus_t cublasSetWorkspace(cublasHandle_t, void *, size_t);
const char *cublasGetStatusString(cublasStatus_t);

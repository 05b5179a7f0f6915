// The functions of BLAS, BLACS and ScaLAPACK that are used here; their packages bring no C header.
#pragma once

extern "C" {

void openblas_set_num_threads(int threads);
void dgemm_(const char*, const char*, const int* m, const int* n, const int* k, const double* alpha,
            const double* a, const int* lda, const double* b, const int* ldb, const double* beta,
            double* c, const int* ldc);
void sgemm_(const char*, const char*, const int* m, const int* n, const int* k, const float* alpha,
            const float* a, const int* lda, const float* b, const int* ldb, const float* beta,
            float* c, const int* ldc);

void Cblacs_get(int context, int what, int* value);
void Cblacs_gridinit(int* context, const char* order, int rows, int columns);
void Cblacs_gridinfo(int context, int* rows, int* columns, int* row, int* column);
void Cblacs_gridexit(int context);

int numroc_(const int* n, const int* block, const int* coordinate, const int* source,
            const int* processes);
void descinit_(int* description, const int* m, const int* n, const int* row_block,
               const int* column_block, const int* row_source, const int* column_source,
               const int* context, const int* leading, int* info);
double pdlange_(const char* norm, const int* m, const int* n, const double* a, const int* ia,
                const int* ja, const int* description, double* work);
void pdgetf2_(const int* m, const int* n, double* a, const int* ia, const int* ja,
              const int* description, int* pivots, int* info);
void pdlaswp_(const char* direction, const char* what, const int* n, double* a, const int* ia,
              const int* ja, const int* description, const int* first, const int* last,
              const int* pivots);
void pdtrsm_(const char* side, const char* half, const char* transposed, const char* diagonal,
             const int* m, const int* n, const double* alpha, const double* a, const int* ia,
             const int* ja, const int* description_a, double* b, const int* ib, const int* jb,
             const int* description_b);
void pdgemm_(const char* transposed_a, const char* transposed_b, const int* m, const int* n,
             const int* k, const double* alpha, const double* a, const int* ia, const int* ja,
             const int* description_a, const double* b, const int* ib, const int* jb,
             const int* description_b, const double* beta, double* c, const int* ic, const int* jc,
             const int* description_c);
void pdgetrs_(const char* transposed, const int* n, const int* columns, const double* a,
              const int* ia, const int* ja, const int* description_a, const int* pivots, double* b,
              const int* ib, const int* jb, const int* description_b, int* info);
}
